"""What programs hold: tensors, lazy tables, masks, sparse forms, units; accepted as such, or refused in one line."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from scipy import sparse

import sigmapca_cli as sp
from sigmapca_cli.sklearn import SigmaPCA

X = np.random.default_rng(0).laplace(size=(300, 3)) * [3, 2, 1]


def same(found, peer, tol=1e-6):
    np.testing.assert_allclose(found.components_, peer.components_, atol=tol)


def test_tensors_of_any_layout_and_type():
    whole = SigmaPCA(2).fit(X)
    tensor = torch.tensor(X)
    same(SigmaPCA(2).fit(tensor.requires_grad_()), whole)
    half = torch.tensor(X).bfloat16()
    found = SigmaPCA(2).fit(half)
    same(found, SigmaPCA(2).fit(half.float().numpy()))
    assert found.transform(half).shape == (300, 2) and np.isfinite(found.score(half))
    for form in (
        torch.tensor(X).to_sparse(),
        torch.tensor(X).to_sparse_csr(),
        torch.tensor(X).to_sparse_csc(),
    ):
        same(SigmaPCA(2).fit(form), whole)
    with pytest.raises(ValueError, match="to_dense"):
        SigmaPCA(2).fit(torch.tensor(X).to_sparse_bsr((1, 3)))


def test_a_run_takes_the_same_forms(tmp_path):
    run = sp.train(torch.tensor(X).bfloat16(), k=2, solver="newton", outputs=tmp_path)
    assert run.transform(torch.tensor(X).bfloat16()).shape == (300, 2)
    loose = sp.train(torch.tensor(X).to_sparse(), k=2, solver="newton", outputs=tmp_path)
    assert loose.transform(torch.tensor(X).to_sparse()).shape == (300, 2)
    with pytest.raises(sp.InputError, match="to_dense"):
        sp.train(torch.tensor(X).to_sparse_bsr((1, 3)), k=2, outputs=tmp_path)


def test_a_lazy_table_is_collected(tmp_path):
    polars = pytest.importorskip("polars", reason="skipped: polars is not installed")
    table = polars.DataFrame(X, schema=["a", "b", "c"])
    same(SigmaPCA(2).fit(table.lazy()), SigmaPCA(2).fit(X))
    run = sp.train(table.lazy(), k=2, solver="newton", outputs=tmp_path)
    assert list(run.names) == ["a", "b", "c"] and run.transform(table.lazy()).shape == (300, 2)


def test_masked_values_are_missing_and_not_what_is_below_the_mask():
    masked = np.ma.masked_array(X, mask=np.zeros_like(X, bool))
    same(SigmaPCA(2).fit(masked), SigmaPCA(2).fit(X))
    masked[0, 0] = np.ma.masked
    for call in (SigmaPCA(2).fit, SigmaPCA(2).fit(X).transform, SigmaPCA(2).fit(X).certificate):
        with pytest.raises(ValueError, match="NaN"):
            call(masked)


@pytest.mark.parametrize("settings", [{}, {"a": 4.0}, {"sample_weight": 1.5}], ids=str)
def test_units_that_no_covariance_holds_are_refused_as_the_command_does(settings):
    weight = settings.pop("sample_weight", None)
    for factor, word in ((1e160, "large"), (1e-160, "small"), (1e-170, "small")):
        with pytest.raises(ValueError, match=f"too {word}"):
            SigmaPCA(2, **settings).fit(X * factor, sample_weight=weight)
        with pytest.raises(ValueError, match=f"too {word}"):
            SigmaPCA(2, **settings).fit(sparse.csr_matrix(X * factor), sample_weight=weight)
        with pytest.raises(ValueError, match=f"too {word}"):
            SigmaPCA(2, **settings).partial_fit(X * factor, sample_weight=weight)


@pytest.mark.filterwarnings("ignore")
def test_tensors_without_plain_values_are_refused_in_one_line(tmp_path):
    tensors = (
        torch.empty(30, 3, device="meta"),
        torch.nested.nested_tensor([torch.zeros(3), torch.zeros(2)]),
    )
    for tensor in tensors:
        with pytest.raises(ValueError, match="give a dense one"):
            SigmaPCA(2).fit(tensor)
        with pytest.raises(sp.InputError, match="give a dense one"):
            sp.train(tensor, k=2, outputs=tmp_path)
    held = torch.quantize_per_tensor(torch.tensor(X, dtype=torch.float32), 0.1, 0, torch.qint32)
    same(SigmaPCA(2).fit(held), SigmaPCA(2).fit(held.dequantize()))


def test_numbers_of_numpy_are_numbers():
    assert SigmaPCA(np.float32(0.9)).fit(X).n_components_ == SigmaPCA(0.9).fit(X).n_components_
    same(SigmaPCA(np.int64(2), a=np.float32(4)).fit(X), SigmaPCA(2, a=4.0).fit(X))
    same(SigmaPCA(2, tau=np.float32(0.5)).fit(X), SigmaPCA(2, tau=0.5).fit(X))


def test_the_certificate_reads_rows_as_transform_does():
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    found = SigmaPCA(2).fit(frame)
    whole = found.certificate(frame)
    for bad in (frame[["c", "b", "a"]], frame.assign(a=np.nan), frame[["a", "b"]], frame.iloc[0]):
        for call in (found.transform, found.certificate):
            with pytest.raises(ValueError):
                call(bad)
    np.testing.assert_array_equal(found.certificate(frame).identified, whole.identified)


def test_the_inverse_of_sparse_components_is_refused_in_one_line():
    found = SigmaPCA(2).fit(X)
    with pytest.raises(ValueError, match="toarray"):
        found.inverse_transform(sparse.csr_matrix(found.transform(X)))
    with pytest.raises(ValueError, match="takes numbers"):
        found.inverse_transform([["a", "b"]])
    np.testing.assert_allclose(
        found.inverse_transform(torch.tensor(found.transform(X))), found.inverse_transform(found.transform(X))
    )


def test_arrays_of_other_libraries_are_read_or_named():
    class Elsewhere:
        """An array on a device, as CuPy's: NumPy may not read it."""

        shape, dtype = (300, 3), np.dtype(float)

        def __array_namespace__(self):
            return np

        def __array__(self, *_, **__):
            raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    with pytest.raises(ValueError, match="NumPy array"):
        SigmaPCA(2).fit(Elsewhere())


@pytest.mark.full
def test_with_the_array_api_of_scikit_learn_tensors_are_rows_too():
    code = (
        "import numpy as np, torch, sklearn; from sigmapca_cli.sklearn import SigmaPCA;"
        "sklearn.set_config(array_api_dispatch=True);"
        "X = np.random.default_rng(0).laplace(size=(300, 3)) * [3, 2, 1];"
        "found = SigmaPCA(2).fit(torch.tensor(X));"
        "assert (found.components_ == SigmaPCA(2).fit(X).components_).all();"
        "assert isinstance(found.transform(torch.tensor(X)), np.ndarray)"
    )
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
