"""The notebook is what its cells give today, and the example of a layer does what its text says."""

import importlib.util
import json
import re
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def loaded(path):
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def shape_of(text):
    """A text without its digits: numbers, dates and hashes may differ in their last places."""
    text = re.sub(r"\d{4}-\d\d-\d\d_[\d-]+_[0-9a-f]+|base64,[\w+/=]+", "#", "".join(text))
    text = re.sub(r"-?[\d.]+(e-?\d+)?", "0", text)
    return re.sub(r" ?([][]) ?", r"\1", re.sub(r"\s+", " ", text))  # NumPy pads numbers to one width


def test_the_notebook_is_what_its_cells_give(monkeypatch):
    import torch

    torch.set_num_threads(1)
    monkeypatch.delenv("SIGMAPCA_OUTPUTS", raising=False)
    made = loaded(EXAMPLES / "notebook" / "make.py")
    kept, now = json.loads(made.NOTEBOOK.read_text()), made.notebook()
    assert len(kept["cells"]) == len(now["cells"]) == len(made.CELLS)
    for old, new in zip(kept["cells"], now["cells"], strict=True):
        assert (old["source"], old["cell_type"], old["id"]) == (new["source"], new["cell_type"], new["id"])
        for before, after in zip(old.get("outputs", []), new.get("outputs", []), strict=True):
            assert shape_of(before.get("text", "")) == shape_of(after.get("text", ""))
            assert before.get("data", {}).keys() == after.get("data", {}).keys()
            for form in ("text/plain", "text/html"):
                assert shape_of(before.get("data", {}).get(form, "")) == shape_of(
                    after.get("data", {}).get(form, "")
                )
    text = "".join("".join(o.get("text", "")) for cell in now["cells"] for o in cell.get("outputs", []))
    ours, linear = (
        [float(v) for v in re.findall(r"[\d.]+", row)]
        for row in re.findall(r"(?:sigma-PCA|linear PCA) +\[(.*)\]", text)
    )
    assert min(ours) > 0.99 > 0.9 > min(linear)


def test_a_notebook_that_is_out_of_date_is_found():
    assert shape_of("[1.    0.999 1.   ]") == shape_of("[ 1. 0.9 1.]") == shape_of("[-1.2e-16  1. 1.]")
    assert shape_of(["4 of 4 components", " [1.  0.99]"]) == shape_of("3 of 8 components [ 0.5 1.]")
    assert shape_of("4 of 4 components are identified") != shape_of("4 of 4 components have identified axes")


def test_the_code_of_the_page_runs(tmp_path, monkeypatch, capsys):
    import torch

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIGMAPCA_OUTPUTS", raising=False)
    torch.set_num_threads(1)
    page = (EXAMPLES.parent / "docs" / "python.md").read_text("utf-8")
    names = {}
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 5
    for block in blocks:
        exec(block, names)
    assert names["best"].folder == names["same"].folder == names["run"].folder
    assert "4 of 4 components have identified axes" in capsys.readouterr().out
    assert (tmp_path / "spectrum.png").exists() and len(names["table"]) == 1
    (short,) = re.findall(
        r"```python\n(.*?)```", (EXAMPLES.parent / "README.md").read_text("utf-8"), re.DOTALL
    )
    exec(short.replace("k=12", "k=4"), names)
    assert len(names["table"]) == 2


def test_the_layer_finds_the_axes_of_the_features():
    found = loaded(EXAMPLES / "layer" / "digits.py").main(epochs=12)
    layer, linear = (found[f"|cos| of {name} with those of a solver, where identified"] for name in (
        "the layer's filters", "the axes of linear PCA",
    ))  # fmt: skip
    assert layer > 0.99 and layer > linear
    assert found["accuracy of the network"] > 0.85
    assert abs(found["read from 10 components of the layer"] - found["accuracy of the network"]) < 0.05
