"""`sp.train`: the code of `sigmapca train`, called from a program."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sigmapca_cli.api.run import Run
from sigmapca_cli.composition.compose import compose_job
from sigmapca_cli.runner.progress import quiet, say
from sigmapca_cli.settings.conf_files import choices_of
from sigmapca_cli.settings.quoting import override
from sigmapca_cli.system.errors import InputError


def train(
    data: Any = None,
    *,
    k: int | float | str | None = None,
    a: float | str | None = None,
    model: str | None = None,
    solver: str | None = None,
    seed: int | None = None,
    outputs: str | os.PathLike[str] | None = None,
    overrides: Sequence[str] = (),
    verbose: bool = False,
    **settings: Any,
) -> Run:
    """Train a model as `sigmapca train` does, and return its run.

    Parameters
    ----------
    data : array-like, table, path, list of paths or str, optional
        Rows (n, p) in memory: an array, a table of pandas or polars, a tensor, a sparse matrix, an array or data set
        of xarray; of more dimensions with data__rows, the name or number of the one that counts rows. Or a file or
        folder that `data=` reads, or a list of files, one below the other. Or the name of data, such as "planted".
        Natural image patches unless given.
    k : int, float or str, optional
        Components: how many, a share of the variance such as 0.95, "all", "mdl" or "mle".
    a : float or "auto", optional
        Scale of the nonlinearity. "auto" chooses it for each component from the data, as `a=auto` does.
    model : str, optional
        A method, as `sigmapca models` lists them.
    solver : {"stochastic", "newton", "moments", "independence"}, optional
        Which way the solution is found.
    seed : int, optional
        Start and order of the rows.
    outputs : str or PathLike, optional
        Where run folders go: $SIGMAPCA_OUTPUTS, else ./outputs, unless given.
    overrides : sequence of str
        Further words of the command line, such as "sigma=batch".
    verbose : bool
        Whether to print what the command prints.
    **settings : Any
        Any key of the configuration; two underscores are a dot: `data__half="even"`, `optimizer__schedule="constant"`.

    Returns
    -------
    Run
        The run, finished. Its folder is an ordinary one: every command can show, evaluate, resume or compare it.

    Raises
    ------
    InputError
        If the settings or the data cannot be used.
    RunFailed
        If training diverged, or did not converge with strict=True.
    Stopped
        If Ctrl-C or a signal stopped the run; the same call with if_exists="resume" goes on.

    Notes
    -----
    Data in memory are trained on as they are. A copy is written once to <outputs>/arrays/, under a hash of the values,
    so that the run can be evaluated and resumed later. With if_exists="skip" a call that was made before returns the
    finished run.
    """
    given = {"k": k, "a": a, "model": model, "solver": solver, "seed": seed, "outputs": outputs}
    rows, copy = None, None
    if is_labelled(data):
        from sigmapca_cli.api.copies import kept

        data = kept(data, settings.get("data__dataset"), None if outputs is None else os.fspath(outputs))
    elif in_memory(data):
        from sigmapca_cli.api.copies import keep, place_of
        from sigmapca_cli.data.matrix.held import as_rows

        rows = as_rows(data)
        data = copy = place_of(rows, None if outputs is None else os.fspath(outputs))
    words = [
        *(words_of_data(data) if copy is None else words_of_copy(copy)),
        *(override(name, value) for name, value in given.items() if value is not None),
        *(override(name.replace("__", "."), value) for name, value in settings.items()),
        *overrides,
    ]
    job = compose_job(words)
    if copy is not None and (job.cfg.data.name, job.cfg.data.path) != ("array", str(copy)):
        raise InputError(f"data={job.cfg.data.name}: rows are given already; leave data= and data.path= out")
    from sigmapca_cli.runner.run import run
    from sigmapca_cli.runner.unread import refuse_unread

    ignored = refuse_unread(job)
    if copy is not None:
        keep(rows, copy)
    token = quiet.set(not verbose)
    try:
        for line in ignored:
            say(line)
        return Run.open(run(job, rows))
    finally:
        quiet.reset(token)


def is_labelled(data: Any) -> bool:
    """Return whether data are an array or a data set of xarray, whose dimensions have names."""
    return hasattr(data, "dims") and hasattr(data, "coords")


def in_memory(data: Any) -> bool:
    """Return whether data are rows, and not the name or the place of some."""
    names = (str, os.PathLike)
    files = isinstance(data, list | tuple) and bool(data) and all(isinstance(one, names) for one in data)
    return not (data is None or isinstance(data, names) or files)


def words_of_data(data: Any) -> list[str]:
    """Return the overrides that say which data: none, a name, a file or folder, or a list of files."""
    if data is None:
        return []
    if isinstance(data, str) and data in choices_of("data"):
        return [f"data={data}"]
    from sigmapca_cli.data.describe.recognise import kind_of_path

    if isinstance(data, list | tuple):
        paths = [str(Path(one).expanduser()) for one in data]
        return [f"data={kind_of_path(paths[0])}", override("data.path", paths)]
    return [f"data={kind_of_path(os.fspath(data))}", override("data.path", Path(data).expanduser())]


def words_of_copy(copy: Path) -> list[str]:
    """Return the overrides with which the command makes the same run from the copy of rows in memory.

    Every value is meant: nothing is taken for an index or a fill value.
    """
    return ["data=array", override("data.path", copy), "data.recognise=false"]
