"""Write batches: rolling back to a savepoint undoes everything after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from partita.database.storage.branch_engine import BranchEngine
from partita.database.storage.group_commit import GroupCommit
from partita.database.storage.write_batch import Savepoint, WriteBatch
from partita.errors import RequestError
from partita.foundation.clock import system_clock
from partita.testing.manual_loop import ManualLoop

KEYS = (b"a", b"b", b"c")


class Commits:
    """A group commit in memory with the keys `a` and `b`, and without `c`."""

    def __init__(self) -> None:
        self.engine = BranchEngine()
        self.engine.commit({b"a": b"old a", b"b": b"old b"})
        self.engine.refresh()
        self.loop = ManualLoop()
        self.commits = GroupCommit(
            self.engine,
            self.loop.call_soon,
            self.loop.call_soon,
            self.loop.call_later,
            lambda changes: None,
            lambda failure: RequestError(str(failure)),
            system_clock,
        )

    def write(self, decide: Callable[[WriteBatch], None]) -> None:
        answers: list[Any] = []
        self.commits.write(decide, answers.append)
        self.loop.run_ready()
        assert answers == [None]

    def stored(self) -> dict[bytes, bytes | None]:
        return {key: self.engine.snapshot().get(key) for key in KEYS}


def test_what_is_rolled_back_is_not_committed() -> None:
    commits = Commits()
    called: list[str] = []

    def decide(write_batch: WriteBatch) -> None:
        write_batch.put(b"a", b"new")
        write_batch.after_merge(lambda: called.append("before"))
        write_batch.hold(b"a")
        savepoint = write_batch.savepoint()
        write_batch.put(b"a", b"newer")
        write_batch.delete(b"b")
        write_batch.put(b"c", b"new")
        write_batch.after_merge(lambda: called.append("after"))
        write_batch.hold(b"b")
        write_batch.rollback_to(savepoint)
        assert [write_batch.get(key) for key in KEYS] == [b"new", b"old b", None]

    commits.commits.write(decide, lambda answer: None)
    assert called == ["before"]
    assert [commits.commits.is_held(key) for key in KEYS] == [True, False, False]
    commits.loop.run_ready()
    assert commits.stored() == {b"a": b"new", b"b": b"old b", b"c": None}


def test_what_follows_a_rollback_counts() -> None:
    commits = Commits()

    def decide(write_batch: WriteBatch) -> None:
        savepoint = write_batch.savepoint()
        write_batch.put(b"c", b"1")
        write_batch.rollback_to(savepoint)
        write_batch.delete(b"a")
        write_batch.put(b"c", b"2")

    commits.write(decide)
    assert commits.stored() == {b"a": None, b"b": b"old b", b"c": b"2"}


steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(KEYS), st.binary(max_size=2)),
        st.tuples(st.just("delete"), st.sampled_from(KEYS)),
        st.tuples(st.just("savepoint")),
        st.tuples(st.just("rollback"), st.integers(0, 5)),
    ),
    max_size=30,
)


@given(steps)
def test_a_rollback_returns_to_a_copy_of_the_changes_at_its_savepoint(steps: list[Any]) -> None:
    def decide(write_batch: WriteBatch) -> None:
        expected: dict[bytes, bytes | None] = {}
        copies: list[tuple[Savepoint, dict[bytes, bytes | None]]] = []
        for step in steps:
            match step:
                case ("put", key, value):
                    write_batch.put(key, value)
                    expected[key] = value
                case ("delete", key):
                    write_batch.delete(key)
                    expected[key] = None
                case ("savepoint",):
                    copies.append((write_batch.savepoint(), dict(expected)))
                case ("rollback", back) if copies:
                    # To an outer savepoint, which ends those that were set after it.
                    del copies[max(1, len(copies) - back) :]
                    savepoint, copied = copies[-1]
                    write_batch.rollback_to(savepoint)
                    expected = dict(copied)
            assert list(write_batch.changes.items()) == list(expected.items())

    Commits().write(decide)
