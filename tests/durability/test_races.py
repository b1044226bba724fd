"""Many processes at once: no folder is shared, and a folder has one owner."""

import json
import os
import time
from dataclasses import asdict, replace
from pathlib import Path

from forked import race, torture

from sigmapca_cli.storage.claim import claim_folder, create_run_folder
from sigmapca_cli.storage.lease import myself
from sigmapca_cli.storage.lock import FolderLock
from sigmapca_cli.system.errors import SigmapcaError


def test_folders_made_in_the_same_second_are_not_shared(tmp_path: Path) -> None:
    count, each = 24, 4

    def make(index: int) -> str:
        made = [create_run_folder(tmp_path, "nlpca", "abcdef0123456789") for _ in range(each)]
        for folder in made:
            (folder / "mine").write_text(str(index))
        assert all((folder / "mine").read_text() == str(index) for folder in made)
        return " ".join(folder.name for folder in made)

    names = [name for words in race(make, count) for name in words.split()]
    assert len(names) == count * each == len(set(names))
    assert len({name[:19] for name in names}) <= 3, "the test is about the same second"


def take(folder: Path) -> str:
    try:
        FolderLock(folder).acquire()
        return "won"
    except SigmapcaError as error:
        assert "in use by process" in str(error)
        return "refused"


def test_a_race_for_a_free_folder_has_one_winner(tmp_path: Path) -> None:
    for index in range(torture(2)):
        folder = tmp_path / str(index)
        folder.mkdir()
        assert sorted(race(lambda _, folder=folder: take(folder), 10)) == ["refused"] * 9 + ["won"]  # type: ignore[misc]


def test_a_race_for_a_dead_owners_folder_has_one_winner(tmp_path: Path) -> None:
    for index in range(torture(2)):
        folder = tmp_path / str(index)
        folder.mkdir()
        (folder / ".owner.1").write_text(json.dumps(asdict(replace(myself(), started="1"))))
        assert sorted(race(lambda _, folder=folder: take(folder), 10)) == ["refused"] * 9 + ["won"]  # type: ignore[misc]


def test_a_race_for_one_named_folder_has_one_winner(tmp_path: Path) -> None:
    """`--run-dir`: all make the folder, or find it empty; one may go on to write there."""

    def claim(folder: Path) -> str:
        try:
            with FolderLock(claim_folder(folder)):
                (folder / "run.h5").touch()
            return "won"
        except SigmapcaError:
            return "refused"

    for index in range(torture(2)):
        words = race(lambda _, index=index: claim(tmp_path / str(index)), 10)  # type: ignore[misc]
        assert sorted(words) == ["refused"] * 9 + ["won"]


def test_owners_that_come_and_go_never_overlap(tmp_path: Path) -> None:
    """Each holder notes that it is inside; a second one inside at the same time would find the note."""
    rounds = 3 if torture(0) == 0 else 20

    def work(_: int) -> str:
        entered, until = 0, time.monotonic() + 60
        while entered < rounds and time.monotonic() < until:
            try:
                with FolderLock(tmp_path):
                    os.close(os.open(tmp_path / "inside", os.O_CREAT | os.O_EXCL))
                    os.unlink(tmp_path / "inside")
                    entered += 1
            except SigmapcaError:
                time.sleep(0.001)
        return str(entered)

    assert race(work, 8) == [str(rounds)] * 8, "everybody gets a turn, and nobody met somebody else inside"
