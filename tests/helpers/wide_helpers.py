"""A run without its folder: a configuration and a source give a solution."""

from methods_helpers import composed

from sigmapca_cli.runner.plan import SOLVERS, method_of, resolved_k
from sigmapca_cli.settings.ways import way_of
from sigmapca_cli.training import loop


def solved(source, *overrides, k=5):
    """The solution of a model and overrides on a source, and the configuration, in this process."""
    cfg = composed(overrides[0], f"k={k}", "data=array", "data.path=x.npy", *overrides[1:])
    cfg.device = "cpu"
    method = method_of(cfg)
    cfg.k = resolved_k(cfg, source)
    if method is None:
        return SOLVERS[way_of(cfg)].solve(cfg, source)[0], cfg
    from sigmapca_cli.runner import stochastic

    trainer = stochastic.make_trainer(cfg, method, source, "cpu")
    loop.train([trainer])
    return stochastic.build_solution(trainer, source)[0], cfg
