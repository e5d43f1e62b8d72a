"""The event log returns every appended record in order, for random appends and reads."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from partita.database.execution.embedded_database import EmbeddedDatabase
from partita.database.logs.event_log import event_records
from partita.database.logs.event_log.event_records import (
    NewRecord,
    append_records,
    read_page,
    read_tail,
)
from partita.database.logs.event_log.event_streams import EventStream
from partita.database.logs.event_log.sequence_numbers import (
    LAST_SEQUENCE,
    LAST_SHARD,
    ending_number,
    parse_sequence_number,
    sequence_number,
    starting_number,
)
from partita.database.logs.event_log.shard_splits import (
    HASH_KEYS,
    EventShard,
    Resharding,
    first_shards,
    open_shards,
)
from partita.database.operations.operation_context import OWN_REQUEST, Request, WriteContext
from partita.database.storage.branch_engine import BranchEngine
from partita.database.storage.engine import Snapshot
from partita.foundation.clock import system_clock

KEYS = st.text(min_size=1, max_size=8)
DATA = st.sampled_from(["", "YQ==", "eHl6" * 40])
HASH_KEY = st.none() | st.integers(0, HASH_KEYS - 1).map(str)
RECORDS = st.lists(st.builds(NewRecord, KEYS, DATA, HASH_KEY), min_size=1)


class Log:
    """An event stream in its own database, for appending records without the API."""

    def __init__(self, shards: int) -> None:
        self.engine = BranchEngine()
        self.calls: list[Any] = []
        self.database = EmbeddedDatabase(
            self.engine,
            call_soon=self.calls.append,
            call_from_thread=self.calls.append,
            call_later=lambda seconds, call: None,
            clock=system_clock,
        )
        self.stream = EventStream(
            number=1,
            name="s",
            created_at=0.0,
            mode="PROVISIONED",
            shards=first_shards(shards, 1000.0),
            next_shard_number=shards,
            retention_hours=24,
            record_kib_max=1024,
        )

    @property
    def snapshot(self) -> Snapshot:
        return self.engine.snapshot()

    def append(self, records: list[NewRecord]) -> list[event_records.Receipt]:
        receipts: list[event_records.Receipt] = []

        def write(context: WriteContext, request: Request) -> bytes:
            receipts.extend(append_records(context.write_batch, self.stream, records))
            return b""

        self.database.write(write, OWN_REQUEST, lambda answer: None)
        while self.calls:
            self.calls.pop(0)()
        return receipts

    def page(
        self, shard: EventShard, sequence: int, records_max: int = 10_000, bytes_max: int = 1 << 30
    ) -> tuple[list[Any], int]:
        page = read_page(self.snapshot, self.stream, shard, sequence, records_max, bytes_max)
        return json.loads(b"[%b]" % b",".join(page.bodies)), page.sequence


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 5),
    st.lists(RECORDS, max_size=6),
    st.integers(1, 7),
    st.integers(1, 2000),
    st.sampled_from([50, 300, 64 * 1024]),
)
def test_every_record_is_read_once_in_order_in_any_pages(
    shard_count: int, requests: list[list[NewRecord]], limit: int, bytes_max: int, batch_bytes: int
) -> None:
    kept, event_records.BATCH_BYTES_MAX = event_records.BATCH_BYTES_MAX, batch_bytes
    try:
        written = Log(shard_count)
        expected: dict[bytes, list[tuple[str, str, str]]] = {}
        for records in requests:
            receipts = written.append(records)
            for record, (number, shard_id) in zip(records, receipts, strict=True):
                shown = (number.decode(), record.partition_key, record.data)
                expected.setdefault(shard_id, []).append(shown)
        for shard in written.stream.shards:
            sequence, found = 1, []
            while True:
                records_found, following = written.page(shard, sequence, limit, bytes_max)
                if not records_found:
                    assert following == sequence
                    break
                assert len(records_found) <= limit
                assert following == sequence + len(records_found)
                sequence = following
                found += [
                    (one["SequenceNumber"], one["PartitionKey"], one["Data"])
                    for one in records_found
                ]
            assert found == expected.get(shard.shard_id.encode(), [])
            assert read_tail(written.snapshot, written.stream, shard).last == len(found)
    finally:
        event_records.BATCH_BYTES_MAX = kept


def test_a_page_is_no_larger_than_it_may_be() -> None:
    written = Log(1)
    written.append([NewRecord("k", "YWJj" * 100) for _ in range(20)])
    [shard] = written.stream.shards
    sizes = [len(json.dumps(one)) for one in written.page(shard, 1)[0]]
    assert len(set(sizes)) == 1
    found, _ = written.page(shard, 1, bytes_max=sizes[0] * 5)
    assert 1 <= len(found) <= 5
    found, _ = written.page(shard, 1, bytes_max=1)
    assert len(found) == 1


@given(
    st.integers(0, LAST_SHARD),
    st.integers(0, 1 << 33),
    st.integers(0, LAST_SEQUENCE),
    st.integers(0, 1 << 33),
)
def test_a_sequence_number_says_where_its_record_is(
    number: int, opened_at: int, sequence: int, at: int
) -> None:
    shard = EventShard(number=number, hash_keys=("0", "1"), opened_at=float(opened_at))
    text = str(sequence_number(shard, sequence, at))
    assert parse_sequence_number(text) == (opened_at, number, sequence, at)


def test_a_shard_begins_before_its_records_and_ends_behind_them() -> None:
    shard = EventShard(number=3, hash_keys=("0", "1"), opened_at=1e9, closed_at=1.5e9, last=7)
    numbers = [int(starting_number(shard))]
    numbers += [sequence_number(shard, sequence, 1.2e9) for sequence in (1, 2, 7)]
    numbers.append(int(ending_number(shard)))
    assert numbers == sorted(set(numbers))
    assert all(len(str(number)) == 56 for number in numbers)


def test_what_is_no_sequence_number() -> None:
    number = sequence_number(EventShard(number=5, hash_keys=("0", "1"), opened_at=1e9), 1, 1e9)
    for wrong in (0, 7, number + 1, number + (1 << 144), number + (1 << 184)):
        assert parse_sequence_number(str(wrong)) is None


@settings(deadline=None)
@given(st.integers(1, 12), st.lists(st.integers(1, 24), max_size=5))
def test_open_shards_share_all_hash_keys_however_often_they_are_resized(
    first: int, counts: list[int]
) -> None:
    cut = Resharding(first_shards(first, 0.0), {}, first, 0.0)
    for count in counts:
        cut.resize(count)
        shards = open_shards(cut.shards)
        assert len(shards) == count
        assert shards[0].first_hash_key == 0
        assert shards[-1].last_hash_key == HASH_KEYS - 1
        for lower, upper in pairwise(shards):
            assert lower.last_hash_key + 1 == upper.first_hash_key
    by_number = {shard.number: shard for shard in cut.shards}
    assert list(by_number) == list(range(len(by_number)))
    for shard in cut.shards:
        for parent in shard.parents:
            assert not by_number[parent].is_open
            assert parent < shard.number
