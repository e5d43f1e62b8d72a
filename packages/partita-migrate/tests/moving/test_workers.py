"""Worker processes: each has its own tasks, and none outlives the command."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from partita.errors import PartitaError
from partita_migrate.moving.processes.worker_processes import WorkerProcesses

from .echo_job import DIE, REFUSE

HERE = Path(__file__).parent

Echo = WorkerProcesses[tuple[str, int]]


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Echo]]:
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    yield lambda: WorkerProcesses("echo_job", "setup", tuple[str, int], lock, 3)
    os.close(lock)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def pids_of(workers: Echo) -> set[int]:
    return {ask(0)[1] for ask in [workers.one() for _ in range(workers.count)]}


def test_tasks_are_answered_in_order(started: Callable[[], Echo]) -> None:
    with started() as workers:
        answers = list(workers.in_order(range(50)))
        assert [said for said, _ in answers] == [f"setup {n}" for n in range(50)]
        with pytest.raises(PartitaError, match="That is refused"):
            workers.ask(REFUSE)
        assert len(pids_of(workers)) == 3


def test_the_death_of_one_is_said(started: Callable[[], Echo]) -> None:
    with started() as workers:
        asks = [workers.one() for _ in range(workers.count)]
        with pytest.raises(PartitaError, match="has ended; run the command again"):
            asks[1](DIE)
        assert asks[2](0)[0] == "setup 0"


def test_none_outlives_the_command(started: Callable[[], Echo]) -> None:
    with started() as workers:
        pids = pids_of(workers)
    assert not any(map(is_running, pids))

    with pytest.raises(KeyboardInterrupt), started() as workers:
        pids = pids_of(workers)
        raise KeyboardInterrupt
    end = time.monotonic() + 5
    while any(map(is_running, pids)) and time.monotonic() < end:
        time.sleep(0.01)
    assert not any(map(is_running, pids))
