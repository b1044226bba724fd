"""The scores of the solver, on arrays, against the nonlinearities of the methods, on tensors: φ = (z − h)·h′."""

import numpy as np
import pytest
import torch

from sigmapca_cli.methods.nonlinearities import REGISTRY, derivative_one
from sigmapca_cli.solvers.newton.scores import ASYMMETRIC_SCALE, SCORES


@pytest.mark.parametrize("key", [key for key in SCORES if key[0] in REGISTRY], ids="-".join)
def test_a_score_is_what_its_nonlinearity_makes_of_the_loss(key):
    name, derivative = key
    function = REGISTRY[name] if derivative == "true" else derivative_one(REGISTRY[name])
    z = np.linspace(-4, 4, 81)
    h, slope = function(torch.from_numpy(z), 1.3, ASYMMETRIC_SCALE)
    slope = slope.numpy() if isinstance(slope, torch.Tensor) else slope
    np.testing.assert_allclose(SCORES[key](z, np.array(1.3))[0], (z - h.numpy()) * slope, atol=1e-12)
