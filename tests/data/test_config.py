"""The data group: every YAML is complete and builds; ranges and choices are one line."""

from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from sigmapca_cli.data import build
from sigmapca_cli.data.cache.preparing import prepare
from sigmapca_cli.data.config import KINDS, YOUNGER_DATA, DataConfig, as_stored
from sigmapca_cli.data.matrix.sums import write as write_sums
from sigmapca_cli.system.errors import InputError

FOLDER = Path(__file__).resolve().parents[2] / "conf" / "data"
LOADED = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(FOLDER.glob("*.yaml"))}
# Some set k as well, and hold the group's own fields under `data`.
FILES = {name: loaded.get("data", loaded) for name, loaded in LOADED.items()}


@pytest.mark.parametrize("name", FILES)
def test_every_yaml_holds_every_field_its_builder_reads(name, shared_data, tmp_path):
    """A newcomer sees there what the data depend on; what is younger than the format may be left out."""
    given = dict(FILES[name])
    places = {"cifar10": "cifar-10-batches-py", "mnist": "mnist"}
    if name in places:
        given.update(path=str(shared_data / places[name]), split="test")
    if name in ("images", "natural", "cifar10", "mnist"):
        given.update(images=2)
    if name == "images":
        from PIL import Image

        for i in range(2):
            Image.new("L", (20, 20), 50 * i).save(tmp_path / f"{i}.png")
        given.update(path=str(tmp_path))
    if name == "array":
        (tmp_path / "a.csv").write_text("1,2\n3,5\n4,4\n")
        given.update(path=str(tmp_path / "a.csv"))
    if name == "prepared":
        points = DataConfig(**FILES["points"])
        given.update(path=str(prepare(points, tmp_path / "points.h5")))
        name = "points"
    if name == "moments":
        (tmp_path / "a.csv").write_text("1,2\n3,5\n4,4\n")
        write_sums(build(DataConfig(name="array", path=str(tmp_path / "a.csv"))), tmp_path / "sums.h5")
        given.update(path=str(tmp_path / "sums.h5"))
    if name == "cifar100":
        (tmp_path / "train.bin").write_bytes(bytes(range(200)) * 30 + bytes(148))
        given.update(path=str(tmp_path))
    read = set()

    class Watched(DataConfig):
        def __getattribute__(self, key):
            read.add(key)
            return super().__getattribute__(key)

    cfg = Watched(**given)
    read.clear()
    source = build(cfg)
    assert source.name == name and source.n >= 2 and len(source.hash) == 64
    known = {field.name for field in fields(DataConfig)}
    assert read & known <= {*given, *YOUNGER_DATA, "recognise", "path"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"half": "both"}, r"data\.half=both: choose one of all, even, odd"),
        ({"n": 1}, r"data\.n=1: must be a finite number ≥ 2"),
        ({"epsilon": -1.0}, r"data\.epsilon=-1: must be a finite number ≥ 0"),
        ({"noise": float("nan")}, "finite"),
        ({"scale_input": 0.0}, r"scale_input=0: must be a finite number > 0"),
        ({"stride": 0}, "finite number ≥ 1"),
    ],
)
def test_ranges_and_choices(change, message):
    with pytest.raises(InputError, match=message):
        DataConfig(**change)


def test_an_unknown_name_gets_the_nearest_one():
    with pytest.raises(InputError, match="did you mean data=cifar10"):
        build(DataConfig(name="cifar-10"))


def test_a_path_for_data_that_reads_no_file_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"data=natural reads no file: for data\.path= use data=array"):
        build(DataConfig(path=str(tmp_path)))


@pytest.mark.parametrize("name", FILES)
def test_the_command_and_the_class_have_the_same_defaults(name):
    """One table: `data=array` centres only, as the class does; pictures are scaled by feature."""
    from_command, from_class = DataConfig(**FILES[name]), DataConfig(name=name)
    assert FILES[name]["standardise"] == KINDS[name].standardise == from_command.standardise
    for field in fields(DataConfig):
        if field.name in ("standardise", "epsilon", "whiten", "scale_input", "half", "missing", "recognise"):
            assert getattr(from_command, field.name) == getattr(from_class, field.name), field.name


def test_a_configuration_from_before_is_read_as_it_was():
    assert as_stored({"name": "array", "standardise": "feature"})["recognise"] is False
    assert as_stored({"name": "array", "recognise": True})["recognise"] is True
    assert DataConfig(**as_stored({"name": "array", "standardise": "feature"})).standardise == "feature"
