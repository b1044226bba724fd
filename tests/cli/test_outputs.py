"""Files of the user's that stand under the name of an output stay what they are."""

import subprocess
import sys

import pytest


@pytest.fixture
def trained(sigmapca, small, tmp_path):
    assert sigmapca("train", *small, "model=pca_svd", "--run-dir", "run").returncode == 0
    return tmp_path


def test_export_and_report_leave_other_files_alone(sigmapca, trained):
    data = trained / "data.npz"
    data.write_bytes(b"precious")
    for arguments in (("export", "run", "data.npz"), ("report", "run", "-o", "data.npz")):
        result = sigmapca(*arguments)
        assert result.returncode == 2 and result.stderr.startswith("sigmapca: data.npz: ")
        assert data.read_bytes() == b"precious"
    assert sigmapca("export", "run", "data.npz", "--force").returncode == 0
    assert data.read_bytes()[:2] == b"PK"
    assert sigmapca("report", "run", "-o", "page.html").returncode == 0


def test_closed_streams_do_not_fail_a_run(small, tmp_path):
    command = f"{sys.executable} -m sigmapca_cli train {' '.join(small)} steps=20 --run-dir run >&- 2>&-"
    assert subprocess.run(command, shell=True, cwd=tmp_path).returncode == 0
    assert (tmp_path / "run" / "run.h5").exists()
