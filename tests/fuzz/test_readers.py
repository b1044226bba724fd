"""Every reader against damaged files: it reads them, or refuses them in one line; within a gigabyte and ten seconds."""

import logging
import os
import time

import pytest
from fuzz_corpus import PACKED, SEEDS, examples, seeds
from fuzz_mutations import spoilt
from fuzz_readers import read
from hypothesis import HealthCheck, given, settings

from sigmapca_cli.system.errors import SigmapcaError

KINDS = {**{kind: (kind, name, bytes) for kind, (name, _) in SEEDS.items()}, **PACKED}
READER = {"npy in npz": "npz", "batch in tar": "cifar_archive"}
SLOWEST = 10.0  # seconds of processor time


@pytest.fixture(autouse=True)
def quiet():
    """Warnings about what was read are not what is tested, and would fill the screen."""
    loggers = [logging.getLogger(name) for name in ("sigmapca", "PIL")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


@pytest.mark.parametrize("kind", list(SEEDS))
def test_the_files_to_start_from_are_good(kind, tmp_path):
    for content in seeds(kind):
        path = tmp_path / SEEDS[kind][0]
        path.write_bytes(content)
        read(kind, path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", list(KINDS))
def test_damaged_files_cost_one_line(kind, tmp_path, limited, watched):
    base, name, pack = KINDS[kind]
    path = tmp_path / name

    # Random from run to run only where many inputs are asked for: a check must not fail by chance.
    @settings(
        max_examples=examples(15),
        deadline=None,
        database=None,
        derandomize=not os.environ.get("SIGMAPCA_FUZZ"),
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(spoilt(seeds(base)))
    def one(content: bytes) -> None:
        path.write_bytes(pack(content))
        start = time.process_time()
        try:
            read(READER.get(kind, base), path)
        except SigmapcaError as problem:
            said = str(problem)
            assert "\n" not in said and len(said) < 700 + len(str(path)), said
        assert time.process_time() - start < SLOWEST

    one()
