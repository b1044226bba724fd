"""The memory of a run, worked out before it begins."""

import numpy as np
import pytest
from methods_helpers import composed

from sigmapca_cli.data.in_memory import MemorySource
from sigmapca_cli.data.standardisation import Standardisation
from sigmapca_cli.runner import footprint, plan
from sigmapca_cli.system.errors import InputError


def source_of(n, p):
    return MemorySource("array", np.random.default_rng(0).standard_normal((n, p)), Standardisation("none"))


def test_a_run_that_does_not_fit_is_refused_before_it_begins(monkeypatch):
    source, cfg = source_of(50, 3000), composed("pca_svd", "k=4")
    needed = footprint.bytes_needed(cfg, source.n, source.p)
    assert 3 * 3000 * 8 * 4 < needed < 3000 * 3000 * 8
    monkeypatch.setattr(footprint, "memory_left", lambda: needed - 1)
    with pytest.raises(
        InputError, match=r"k=4 of 50 rows × 3000 features needs about 0\.0 GB of memory, and 0\.0 GB"
    ):
        plan.resolved_k(cfg, source)
    monkeypatch.setattr(footprint, "memory_left", lambda: needed)
    plan.resolved_k(cfg, source)


def test_what_is_needed_grows_with_what_is_held():
    few, many = source_of(50, 100), source_of(3000, 2100)

    def needed(source, *words):
        return footprint.bytes_needed(composed(*words), source.n, source.p)

    assert needed(few, "pca_svd", "k=4") >= 3 * 100 * 100 * 8
    assert needed(many, "pca_svd", "k=40") > 5 * needed(many, "pca_svd", "k=1") / 4
    assert needed(many, "nlpca", "k=4", "solver=newton") > needed(many, "pca_svd", "k=4")
    assert needed(many, "fastica", "k=4") > needed(many, "pca_svd", "k=4")
    cfg = composed("pca_svd", "k=10")
    hashed = [footprint.bytes_needed(cfg, 50_000, 1 << 20, sparse) for sparse in (True, False)]
    assert 1 << 29 < hashed[0] < hashed[1] / 2


def test_steps_on_very_wide_batches_are_called_slow():
    assert "each step takes 128 rows of 1048576 features, 0.5 GB" in footprint.heavy_steps(
        composed("nlpca", "k=4"), 50_000, 1 << 20
    )
    for words in (("nlpca", "k=4", "solver=moments"), ("pca_svd", "k=4"), ("nlpca", "k=4", "batch_size=8")):
        assert footprint.heavy_steps(composed(*words), 50_000, 1 << 20) is None
    assert footprint.heavy_steps(composed("nlpca", "k=4"), 300, 50_000) is None
