"""Every model: stopped by a signal at a checkpoint and resumed, it ends with the bits of a run left alone."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from composing import composed
from mechanisms import every
from run_data import datasets

from sigmapca_cli.composition.job import job_of
from sigmapca_cli.runner import checkpoints
from sigmapca_cli.runner.run import run
from sigmapca_cli.settings.conf_files import conf_folder
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.system.errors import Stopped

SMALL = (
    *(
        "data=planted",
        "data.n=120",
        "data.p=6",
        "data.k=3",
        "data.group=1",
        "k=3",
        "batch_size=20",
        "steps=20",
    ),
    *("log_every=5", "threads=1", "checkpoint.every_steps=9", "init=orthogonal", "if_exists=resume"),
)
MODELS = sorted(
    file.stem
    for file in Path(conf_folder(), "model").glob("*.yaml")
    if "kind: direct" not in file.read_text()
)


@pytest.mark.parametrize("model", every(MODELS, ["nlpca", "nlpca_trainable", "lica", "gha"]))
def test_stopped_in_the_middle_and_resumed_gives_the_same_bits(model, tmp_path, monkeypatch):
    job = job_of(composed(f"model={model}", *SMALL))
    whole, parts = (
        replace(job, cfg=replace(job.cfg, run_dir=str(tmp_path / name))) for name in ("whole", "parts")
    )
    run(whole)
    save = checkpoints.Saver.save

    def stop_after(self, trainer, **given):
        save(self, trainer, **given)
        os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patched, pytest.raises(Stopped):
        patched.setattr(checkpoints.Saver, "save", stop_after)
        run(parts)
    assert StoredRun.open(tmp_path / "parts").status == "interrupted"
    run(parts)
    expected, found = (datasets(tmp_path / name) for name in ("whole", "parts"))
    assert expected.keys() == found.keys()
    assert [name for name in expected if expected[name] != found[name]] == []
