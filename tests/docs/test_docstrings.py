"""The docstrings of what other programs import follow numpydoc: every parameter, what is returned, what is raised."""

import ast
import dataclasses
import importlib
import inspect
import textwrap

import pytest
from numpydoc.docscrape import ClassDoc, FunctionDoc, get_doc_object
from numpydoc.validate import validate

CLASSES = (
    "sigmapca_cli.api.run.Run",
    "sigmapca_cli.api.listing.Runs",
    "sigmapca_cli.api.pictures.Picture",
    "sigmapca_cli.nn.layer.SigmaPCA",
    "sigmapca_cli.nn.ica.LinearICA",
    "sigmapca_cli.nn.patches.PatchSigmaPCA",
    "sigmapca_cli.estimator.projection.Projection",
    "sigmapca_cli.sklearn.SigmaPCA",
    "sigmapca_cli.storage.read.StoredRun",
    "sigmapca_cli.evaluation.stability.Stability",
    "sigmapca_cli.evaluation.certificate.Certificate",
    "sigmapca_cli.solvers.newton.solve.NewtonResult",
    "sigmapca_cli.solvers.fourth_moments.maximum.Maximum",
)
MODULES = (
    "sigmapca_cli.solution.export",
    "sigmapca_cli.evaluation",
    "sigmapca_cli.evaluation.matching",
    "sigmapca_cli.evaluation.metrics",
    "sigmapca_cli.evaluation.stability",
)
FUNCTIONS = (
    "sigmapca_cli.api.training.train",
    "sigmapca_cli.api.listing.runs",
    "sigmapca_cli.evaluation.identifiability.certify",
    "sigmapca_cli.solvers.newton.solve.solve",
    "sigmapca_cli.solvers.fourth_moments.maximum.maximise",
    "sigmapca_cli.solvers.main_loss.fit.newton_fit",
    "sigmapca_cli.solvers.fourth_moments.fit.moments_fit",
    "sigmapca_cli.solvers.independence.solve.solve",
    "sigmapca_cli.solvers.independence.fit.independence_fit",
)
# Not asked for: where the first line stands (GL01, GL02), a longer summary, See Also and examples for each.
LEFT_OUT = {"GL01", "GL02", "ES01", "EX01", "SA01", "SA04"}
FIRST_WORDS = {"The", "A", "An", "What", "Whether", "Which", "How"}


def resolved(name):
    """Return the object of a dotted name, `module.name` or `module.Class.name`."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = inspect.getattr_static(found, part)
        return found
    raise LookupError(name)


def public_names():
    """Return the dotted names of all public functions, classes and their own methods and properties."""
    names = list(FUNCTIONS)
    for module in MODULES:
        found = importlib.import_module(module)
        exported = getattr(found, "__all__", None)
        names += [
            f"{module}.{name}"
            for name, value in vars(found).items()
            if inspect.isfunction(value)
            and not name.startswith("_")
            and (name in exported if exported else value.__module__ == module)
        ]
    for name in CLASSES:
        fields = getattr(resolved(name), "__dataclass_fields__", {})
        own = [key for key in vars(resolved(name)) if not key.startswith("_") and key not in fields]
        names += [name, *(f"{name}.{key}" for key in own if is_documented_kind(vars(resolved(name))[key]))]
    return sorted(set(names))


def is_documented_kind(value):
    """Return whether a member of a class has a docstring of its own: a function, a property, or what wraps one."""
    if type(value).__name__ == "RequestMethod":  # scikit-learn's, such as set_fit_request
        return False
    return inspect.isroutine(value) or isinstance(value, property) or hasattr(value, "func")


def function_of(value):
    """Return the function behind a property, a cached one, a class method or a decorator; None for a class."""
    for name in ("fget", "func", "__func__", "__wrapped__"):
        value = getattr(value, name, None) or value
    return value if inspect.isfunction(value) else None


def raised_by(function):
    """Return the names of the exceptions that the body of a function raises itself."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    raised = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None]
    return {call.func.id for call in raised if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)}


def problems(value):
    """Return what is wrong with the docstring of an object, one text for each fault."""
    function = function_of(value)
    target = value if function is None else function
    if not target.__doc__:
        return ["GL08: no docstring"]
    found = validate(get_doc_object(target))["errors"]
    fields = dataclasses.fields(target) if dataclasses.is_dataclass(target) else ()
    left_out = LEFT_OUT | ({"PR01"} if fields else set())
    if isinstance(value, property) or hasattr(value, "func"):
        left_out = left_out | {"RT01"}  # a property: its summary says what it is
    texts = [f"{code}: {text}" for code, text in found if code not in left_out]
    doc = FunctionDoc(target) if function else ClassDoc(target, config={"show_class_members": False})
    told = (
        {part.strip() for entry in doc["Attributes"] for part in entry.name.split(",")} if fields else set()
    )
    texts += [f"field {field.name} is not documented" for field in fields if field.name not in told]
    texts += [f"{name} is documented and is no field" for name in told - {f.name for f in fields}]
    raises = {entry.type for entry in doc["Raises"]}
    raised = raised_by(target) if function else set()
    texts += [f"raises {name}, which the docstring does not say" for name in raised - raises]
    if function and not isinstance(value, property) and not hasattr(value, "func"):
        first = target.__doc__.split()[0]
        texts += [f"begins with {first}, no verb"] if first in FIRST_WORDS else []
    return texts


def test_public_docstrings_follow_numpydoc():
    assert not {name: found for name in public_names() if (found := problems(resolved(name)))}


def test_all_that_is_meant_is_found():
    names = public_names()
    for name in (
        "estimator.projection.Projection.certificate", "storage.read.StoredRun.open", "storage.read.StoredRun.filters",
            "solution.export.export",
        "solvers.newton.solve.solve", "evaluation.matching.amari", "evaluation.stability.Stability.mean",
        "evaluation.evaluate_solution",
    ):  # fmt: skip
        assert f"sigmapca_cli.{name}" in names
    assert len(names) > 60


def silent(x, y):
    """Return nothing that is described."""
    if y:
        raise ValueError(x)
    return x


def wrong(x):
    """
    The sum.

    Parameters
    ----------
    z : int
        Another name.

    Returns
    -------
    int
    """
    return x


@dataclasses.dataclass
class Forgotten:
    """
    A result.

    Attributes
    ----------
    kept : int
        The number kept.
    """

    kept: int
    other: int = 0


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (silent, ["PR01", "RT01", "raises ValueError"]),
        (wrong, ["PR01", "PR02", "RT03", "begins with The"]),
        (Forgotten, ["field other is not documented"]),
        (lambda x: x, ["GL08"]),
    ],
)
def test_a_docstring_that_leaves_something_out_is_found(value, expected):
    found = "\n".join(problems(value))
    for part in expected:
        assert part in found
