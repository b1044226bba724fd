"""Helpers: configurations composed as the command line composes them, planted data, and a minimal loop."""

from types import SimpleNamespace

import composing
import numpy as np
import torch
from omegaconf import OmegaConf
from scipy.optimize import linear_sum_assignment

from sigmapca_cli.methods.method import make_method
from sigmapca_cli.training import optimizers
from sigmapca_cli.training.length import rate_factor


def composed(model, *overrides):
    """The typed configuration of `sigmapca train model=… overrides…`."""
    return OmegaConf.to_object(composing.composed(f"model={model}", *overrides))


def planted(p, k, group, kind, n, noise=0.02, ratio=0.7, seed=0):
    """x (n, p) = s Eᵀ + noise with std 3·ratio^(i//group), centred; the true directions E (p, k)."""
    random = np.random.default_rng(seed)
    E = np.linalg.qr(random.normal(size=(p, k)))[0]
    laplace = random.laplace(size=(n, k)) / np.sqrt(2)
    uniform = random.uniform(-np.sqrt(3), np.sqrt(3), size=(n, k))
    odd = np.arange(k) % 2 == 1
    s = {"laplace": laplace, "uniform": uniform, "mixed": np.where(odd, uniform, laplace)}[kind]
    x = (s * 3 * ratio ** (np.arange(k) // group)) @ E.T + noise * random.normal(size=(n, p))
    return torch.from_numpy(x - x.mean(0)), E


def rows_of(C):
    """2p rows of covariance exactly C and mean zero: all that a linear method sees."""
    values, vectors = torch.linalg.eigh(C)
    root = (len(C) * values.clamp_min(0)).sqrt()[:, None] * vectors.T
    return torch.cat([root, -root])


def matched(filters, truth):
    """Mean |cos| to the true directions, Hungarian matched."""
    filters = filters / np.linalg.norm(filters, axis=0)
    cosines = np.abs(filters.T @ truth)
    return cosines[linear_sum_assignment(-cosines)].mean()


def start(p, k, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.linalg.qr(torch.randn(p, k, dtype=torch.float64, generator=generator))[0]


def fit(cfg, x, k, steps, lr, batch=None, seed=0, W0=None, schedule="cosine"):
    """A minimal loop: returns the state, the Solution and the losses."""
    method = make_method(cfg)
    generator = torch.Generator().manual_seed(seed)
    C = x.T @ x / len(x)
    W0 = start(x.shape[1], k, seed) if W0 is None else W0
    state = method.init_state(W0, (W0.T @ C @ W0).diagonal().sqrt(), generator)
    parameters = {name: state[name] for name in method.parameters}
    optimizer = optimizers.make_optimizer(cfg.optimizer)
    slots, losses = optimizers.zero_state(cfg.optimizer.name, parameters), []
    for step in range(steps):
        if step % 200 == 0:
            method.begin_epoch(state, C)
        chosen = slice(None) if batch is None else torch.randint(len(x), (batch,), generator=generator)
        loss, gradients = method.gradient(state, x[chosen], generator)
        for name in method.tangent_parameters if cfg.optimizer.tangent else ():
            gradients[name] = optimizers.tangent(gradients[name], state[name])
        rate = lr * rate_factor(schedule, step, steps)
        optimizer.step(parameters, gradients, slots, step + 1, rate)
        method.constrain(state)
        losses.append(loss)
    return SimpleNamespace(
        state=state, method=method, losses=torch.stack(losses), solution=method.result(state, C.numpy())
    )
