"""The command's words and exit statuses."""

import pytest
from shell import run_command


def call(*arguments, cwd):
    """The real command in a folder of its own."""
    return run_command(("reproduce", *arguments), cwd, {})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--list"),
        (("cifar-filter",), "did you mean cifar-filters?"),
        (("--all", "rica-beta"), "either names or --all"),
        (("rica-beta", "--data", "cifar"), "did you mean cifar10?"),
        (("rica-beta", "--solver", "newt"), "did you mean newton?"),
        (("rica-beta", "--solver", "newton", "--recipe", "paper"), "trains nothing"),
    ],
)
def test_bad_usage_is_one_line_and_status_2(arguments, words, tmp_path):
    done = call(*arguments, cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_the_list_names_all(tmp_path):
    done = call("--list", cwd=tmp_path)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 20
