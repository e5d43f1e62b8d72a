"""Branches: engines that begin with the state of another one, and are independent afterwards."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from partita.database.storage.branch_engine import BranchEngine
from partita.database.storage.data_folder.lmdb_tree import LmdbEngine
from partita.database.storage.engine import Engine

EVERYTHING = (b"", b"\xff" * 8)

Pairs = dict[bytes, bytes]


def commit(engine: Engine, changes: dict[bytes, bytes | None]) -> None:
    engine.commit(changes)
    engine.refresh()


def pairs(engine: Engine) -> Pairs:
    return dict(engine.snapshot().range(*EVERYTHING))


def changed(before: Pairs, changes: dict[bytes, bytes | None]) -> Pairs:
    after = {**before, **changes}
    return {key: value for key, value in after.items() if value is not None}


keys = st.sampled_from([bytes([first, second]) for first in b"abc" for second in b"xyz"])
changes = st.dictionaries(keys, st.none() | st.binary(max_size=2), max_size=6)
steps = st.lists(st.tuples(st.integers(0, 9), st.booleans(), changes), max_size=25)


@given(below=changes, steps=steps)
def test_every_branch_sees_what_it_began_with_and_its_own_changes(
    below: dict[bytes, bytes | None], steps: list[tuple[int, bool, dict[bytes, bytes | None]]]
) -> None:
    with TemporaryDirectory() as folder:
        lmdb = LmdbEngine(Path(folder), durable=False)
        commit(lmdb, below)
        family = [(BranchEngine(lmdb.snapshot()), changed({}, below))]
        for number, branches, some in steps:
            position = number % len(family)
            engine, expected = family[position]
            if branches:
                family.append((engine.branch(), expected))
            commit(engine, some)
            family[position] = engine, changed(expected, some)
        for engine, expected in family:
            snapshot = engine.snapshot()
            assert list(snapshot.range(*EVERYTHING)) == sorted(expected.items())
            backward = snapshot.range(b"ay", b"cy", reverse=True)
            within = [pair for pair in expected.items() if b"ay" <= pair[0] < b"cy"]
            assert list(backward) == sorted(within, reverse=True)
            assert all(snapshot.get(key) == expected.get(key) for key in [b"ax", b"by", b"cz"])
        lmdb.close()


def test_a_commit_that_the_snapshot_does_not_show_yet_stays_with_its_engine() -> None:
    engine = BranchEngine()
    engine.commit({b"a": b"1"})
    branch = engine.branch()
    engine.refresh()
    branch.refresh()
    assert pairs(engine) == {b"a": b"1"}
    assert pairs(branch) == {}


def test_a_thousand_changes_with_a_branch_after_each_stay_readable() -> None:
    engine = BranchEngine()
    for number in range(1000):
        commit(engine, {number.to_bytes(2, "big"): b"", b"last": str(number).encode()})
        last = engine.branch()
    assert len(pairs(last)) == 1001
    assert last.snapshot().get(b"last") == b"999"


def test_what_is_put_and_deleted_leaves_nothing_behind() -> None:
    engine = BranchEngine()
    for number in range(100):
        commit(engine, {number.to_bytes(2, "big"): b""})
        commit(engine, {number.to_bytes(2, "big"): None})
    _, overlay = engine._snapshot.layers()
    assert (overlay.ordered_keys(), overlay.values) == ([], {})
