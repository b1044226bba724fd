"""What one command reads several times is read once."""

import numpy as np

from sigmapca_cli.data import build
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.matrix import arrays
from sigmapca_cli.data.readers.remembered import remembering


def test_a_table_is_read_once_and_again_when_its_file_has_changed(tmp_path, monkeypatch):
    path, reads, read = tmp_path / "a.csv", [], arrays.read_matrix
    monkeypatch.setattr(arrays, "read_matrix", lambda *asked: (reads.append(asked), read(*asked))[1])
    rows = np.random.default_rng(0).standard_normal((20, 3))

    def built(**options):
        return build(DataConfig(name="array", path=str(path), **options))

    np.savetxt(path, rows, delimiter=",")
    alone = built(half="odd").hash
    with remembering():
        built(missing_codes=[float(f"{rows[0, 0]:.18e}")], missing="mean")  # works on a copy of its own
        assert built(half="odd").hash == alone and built().hash != alone
        assert len(reads) == 2
        built(columns=[0, 1])
        assert len(reads) == 3
        np.savetxt(path, rows[:10], delimiter=",")
        assert built().n == 10
