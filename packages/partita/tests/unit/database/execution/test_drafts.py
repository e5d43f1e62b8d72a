"""Drafts of both kinds: conflicts are noticed, counts and sequence numbers are moved."""

from __future__ import annotations

import struct

import pytest

from partita.database.execution.optimistic.drafts import ValueDraft
from partita.database.logs.change_log import change_log_layout as change_layout
from partita.database.logs.change_log.change_records import created_at
from partita.database.shared.rounds import round_drafts
from partita.database.shared.rounds.fetched_view import FetchedView
from partita.database.storage.branch_engine import BranchEngine
from partita.database.storage.engine import ConflictDetected
from partita.database.storage.group_commit import GroupCommit
from partita.database.storage.postgresql.trip_plans import (
    CommitPlan,
    FetchPlan,
    FetchResult,
    StoredRow,
)
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import table_layout
from partita.database.tables.table_statistics import statistics_value
from partita.errors import RequestError
from partita.testing.manual_loop import ManualLoop

ITEM = table_layout.ITEMS + b"\x00\x00\x00\x01" + b"hash-abc" + b"key"
OTHER = table_layout.ITEMS + b"\x00\x00\x00\x01" + b"hash-xyz" + b"key"
COUNTS = table_layout.statistics_key(1)
SEQUENCE = change_layout.sequence_key(7)


def pack(number: int) -> bytes:
    return change_layout.pack_sequence(number)


def change_value(at: float) -> bytes:
    return b"\x01" + struct.pack(">d", at) + b"keys"


def latest_state(values: dict[bytes, bytes], held: tuple[bytes, ...] = ()) -> GroupCommit:
    """The writer that drafts are applied to, at second 50. A commit that holds items is pending."""
    engine = BranchEngine()
    engine.commit(dict(values))
    engine.refresh()
    loop = ManualLoop()
    commits = GroupCommit(
        engine,
        loop.call_soon,
        loop.call_soon,
        loop.call_later,
        lambda changes: None,
        lambda failure: RequestError(str(failure)),
        lambda: 50.0,
    )

    def hold(write_batch: WriteBatch) -> None:
        for key in held:
            write_batch.put(key, b"in a transaction")
            write_batch.hold(key)

    if held:
        commits.write(hold, lambda answer: None)
    return commits


def applied(draft: ValueDraft, latest: GroupCommit) -> WriteBatch:
    write_batch = WriteBatch(latest)
    draft.apply(write_batch)
    return write_batch


def draft_of(
    values_read: dict[bytes, bytes | None],
    changes: dict[bytes, bytes | None],
    free: tuple[bytes, ...] = (),
    holds: tuple[bytes, ...] = (),
) -> ValueDraft:
    draft = ValueDraft()
    for key, value in values_read.items():
        draft.note(key, value)
    draft.changes, draft.free, draft.holds = dict(changes), set(free), list(holds)
    return draft


def test_a_draft_counts_while_everything_it_read_is_the_same() -> None:
    draft = draft_of({ITEM: b"old", OTHER: None}, {ITEM: b"new", OTHER: None}, holds=(ITEM,))
    write_batch = applied(draft, latest_state({ITEM: b"old"}))
    assert write_batch.changes == {ITEM: b"new", OTHER: None}
    assert write_batch.holds == [ITEM]


@pytest.mark.parametrize("now_there", [{ITEM: b"changed"}, {}, {ITEM: b"old", OTHER: b"came"}])
def test_a_draft_conflicts_when_something_it_read_was_changed_removed_or_put(
    now_there: dict[bytes, bytes],
) -> None:
    with pytest.raises(ConflictDetected):
        applied(draft_of({ITEM: b"old", OTHER: None}, {ITEM: b"new"}), latest_state(now_there))


def test_a_draft_conflicts_when_a_transaction_has_taken_an_item_that_was_free() -> None:
    with pytest.raises(ConflictDetected):
        applied(draft_of({}, {}, free=(ITEM,)), latest_state({}, held=(ITEM,)))


def test_the_counts_of_a_draft_are_added_to_the_latest() -> None:
    draft = draft_of({COUNTS: statistics_value(3, 100)}, {COUNTS: statistics_value(4, 140)})
    write_batch = applied(draft, latest_state({COUNTS: statistics_value(10, 1000)}))
    assert write_batch.changes == {COUNTS: statistics_value(11, 1040)}


def test_the_changes_of_a_draft_are_logged_behind_those_that_came_in_between() -> None:
    logged = change_layout.change_key(7, 1, 4)
    draft = draft_of({SEQUENCE: pack(3)}, {SEQUENCE: pack(4), logged: change_value(20.0)})
    write_batch = applied(draft, latest_state({SEQUENCE: pack(9)}))
    change = change_layout.change_key(7, 1, 10)
    assert write_batch.changes.keys() == {SEQUENCE, change}
    assert write_batch.changes[SEQUENCE] == pack(10)
    assert created_at(write_batch.changes[change] or b"") == 50.0


def known(rows: dict[bytes, StoredRow], counts: dict[bytes, tuple[int, int]]) -> FetchedView:
    view = FetchedView()
    wanted = FetchPlan({ITEM, OTHER}, [], counts.keys(), [])
    view.add(wanted, [], FetchResult(list(rows.values()), [], counts, {}, 1, 0.0, 0.0, 1))
    return view


def round_state(view: FetchedView) -> round_drafts.RoundState:
    return round_drafts.RoundState(lambda: 50.0, view)


def test_a_round_draft_notes_versions_absence_and_whose_changes_it_has_seen() -> None:
    state = round_state(known({ITEM: StoredRow(ITEM, b"old", 5)}, {}))
    write_batch = state.begin(frozenset())
    assert (write_batch.get(ITEM), write_batch.get(OTHER)) == (b"old", None)
    write_batch.put(ITEM, b"new")
    first = state.end(write_batch)
    assert first.checks == {ITEM: 5, OTHER: 0}

    write_batch = state.begin(frozenset())
    assert write_batch.get(ITEM) == b"new"
    write_batch.delete(OTHER)
    second = state.end(write_batch)
    assert second.checks == {}
    assert second.rests_on == {first}

    write_batch = state.begin(frozenset())
    third = state.end(write_batch)
    assert round_drafts.conflicting_drafts([first, second, third], {ITEM}) == {first, second}
    assert round_drafts.conflicting_drafts([first, second, third], {OTHER}) == {first, second}


def test_a_round_draft_that_was_refused_is_not_seen_by_those_behind_it() -> None:
    state = round_state(known({ITEM: StoredRow(ITEM, b"old", 5)}, {}))
    write_batch = state.begin(frozenset())
    write_batch.put(ITEM, b"new")
    state.end(None)
    assert state.begin(frozenset()).get(ITEM) == b"old"


def test_a_commit_adds_up_by_how_much_its_drafts_move_counts() -> None:
    state = round_state(known({}, {COUNTS: (3, 100)}))
    plan = CommitPlan(1, 1)
    for _ in range(2):
        write_batch = state.begin(frozenset())
        assert write_batch.get(COUNTS) == statistics_value(3, 100)
        write_batch.put(COUNTS, statistics_value(4, 140))
        round_drafts.add_draft(plan, state.end(write_batch), frozenset())
    assert plan.counts == {COUNTS: (2, 80)}
    assert not plan.checks
    assert not plan.changes


def test_a_commit_numbers_the_changes_of_its_drafts_one_after_the_other() -> None:
    state = round_state(known({}, {}))
    plan = CommitPlan(1, 1)
    for _ in range(2):
        write_batch = state.begin(frozenset())
        assert write_batch.get(SEQUENCE) is None
        write_batch.put(SEQUENCE, pack(1))
        write_batch.put(change_layout.change_key(7, 1, 1), change_value(20.0))
        round_drafts.add_draft(plan, state.end(write_batch), frozenset())
    assert [(entry.log, entry.number) for entry in plan.log_entries] == [
        (SEQUENCE, 1),
        (SEQUENCE, 2),
    ]
