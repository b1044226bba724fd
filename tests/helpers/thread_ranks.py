"""Ranks as threads of this process: the collectives of `sigmapca_cli.system.row_shards`, without processes to start."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from sigmapca_cli.system.errors import SigmapcaError
from sigmapca_cli.system.processes import blas
from sigmapca_cli.system.row_shards import shared


class ThreadRank:
    """The collectives of one of several threads."""

    def __init__(self, rank: int, board: list[Any], barrier: threading.Barrier) -> None:
        self.rank, self.world, self.board, self.barrier = rank, len(board), board, barrier

    def all_gather(self, word: Any) -> list[Any]:
        self.board[self.rank] = word
        self.barrier.wait(60)
        words = list(self.board)
        self.barrier.wait(60)
        return words

    def add_(self, values: np.ndarray, patient: bool) -> np.ndarray:
        values[:] = sum(self.all_gather(values.copy()))
        return values

    def broadcast_from_zero(self, word: Any) -> Any:
        return self.all_gather(word)[0]

    def run_on_all(self, make: Callable[[], Any]) -> Any:
        made, problem = None, None
        try:
            made = make()
        except SigmapcaError as error:
            problem = error
        problems = self.all_gather(problem)
        for error in [problem, *problems]:
            if error is not None:
                raise error
        return made


def on_ranks(world: int, work: Callable[[int], Any]) -> list[Any]:
    """Return what `work(rank)` returns on each rank; an error that a rank raises takes the place of its result."""
    board, barrier = [None] * world, threading.Barrier(world)

    def one(rank: int) -> Any:
        try:
            with shared(ThreadRank(rank, board, barrier)):
                return work(rank)
        except SigmapcaError as problem:
            return problem
        except BaseException:
            barrier.abort()
            raise

    with blas(1), ThreadPoolExecutor(world) as pool:
        return list(pool.map(one, range(world)))
