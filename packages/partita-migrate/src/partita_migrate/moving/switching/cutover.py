"""Stage `cutover`: the target becomes authoritative, and no write is lost on the way.

1. Before anything is closed: create triggers, open streams, follow what is left of the log.
2. Close the fence: the source refuses writes, and no uncommitted write is left.
3. Follow the log to its end, and compare what was written since the verification.
4. Turn the switch. From here on the way back is followed.

Until step 4, a failure opens the fence again. A kill leaves it closed, which `status` reports: run
the command again, or `rollback`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

from msgspec import field

from partita.client import ClientError
from partita.database.item.attribute_values import Item
from partita.errors import PartitaError
from partita_migrate.model.design import TableDesign
from partita_migrate.moving.following.follow import Follower
from partita_migrate.moving.logs.no_log import NoLog
from partita_migrate.moving.move import Move
from partita_migrate.moving.switching.fences import fence_of
from partita_migrate.moving.switching.fences.source_fence import TARGET, SourceFence
from partita_migrate.moving.switching.move_phase import (
    BACKWARD,
    DESTINATIONS_MADE,
    PHASE,
    STREAMS_MADE,
    UNTURNED,
    AuthorityChange,
    phase_of,
)
from partita_migrate.moving.switching.switch_step import (
    FENCED_AWAY_SECONDS_MAX,
    SwitchResult,
    note_fence,
    open_fence,
    switching,
)
from partita_migrate.moving.switching.target_write_block import TargetWriteBlock
from partita_migrate.moving.target_access.item_positions import (
    POSITION,
    is_tombstone,
    key_of,
    position_of,
)
from partita_migrate.moving.target_access.target_items import item_digest
from partita_migrate.moving.target_access.write_pipeline import Write
from partita_migrate.moving.verifying.verify import VerifyReport, check_unchanged, last_verified
from partita_migrate.moving.way_back.follow_back import PLACES, SINCE, WayBackStart, note_of
from partita_migrate.moving.way_back.items_to_rows import RowMapper, UnmappableItem
from partita_migrate.moving.way_back.kinesis_changes import (
    destination_of,
    open_stream,
    open_stream_from_now,
    stream_arn,
)
from partita_migrate.moving.way_back.stream_markers import wait_for_marker
from partita_migrate.moving.way_back.table_streams import (
    ItemChangeStream,
    StreamCheckpoint,
    StreamTrimmed,
    ensure_stream,
)
from partita_migrate.moving.way_back.way_back_store import WayBackStore, key_bytes
from partita_migrate.workspace.migration_folder import Folder
from partita_migrate.workspace.stage_progress import Progress, silent

WAIT_SECONDS = 30.0
TICK_SECONDS = 1.1
"""After this time, a stream's clock, which counts seconds, has moved on."""
BATCH_KEYS = 100
CATCH_UP_ROUNDS = 10
CATCH_UP_SECONDS = 0.2


class CutoverResult(SwitchResult, kw_only=True, omit_defaults=True):
    """The outcome of a cutover."""

    compared: int = 0
    fenced: list[str] = field(default_factory=list)
    streams: list[str] = field(default_factory=list)
    one_way: list[str] = field(default_factory=list)
    """Tables whose rows cannot be carried back."""
    triggers: list[str] = field(default_factory=list)
    """The source's own triggers, which the way back fires."""


def cutover(
    folder: Folder,
    endpoint: str | None,
    *,
    region: str = "us-east-1",
    wait_seconds: float = WAIT_SECONDS,
    is_one_way: bool = False,
    kinesis: str | None = None,
    is_dry_run: bool = False,
    ask: Callable[[str], str] | None = None,
    progress: Progress = silent,
) -> CutoverResult:
    """Makes the target authoritative. `kinesis` names a stream that keeps changes for the way back
    for longer than 24 hours."""
    with switching(
        "cutover", CutoverResult, folder, endpoint, region=region, is_dry_run=is_dry_run, ask=ask
    ) as (move, gate, report):
        stage = _Cutover(move, gate, report, kinesis or "", progress)
        try:
            stage.check(is_one_way=is_one_way)
            if not is_dry_run:
                stage.run(wait_seconds)
        except BaseException:
            if not is_dry_run:
                stage.open_source()
            raise
    return report


class _Drain(Follower):
    """Follows the source and records its writes, which the way back must not take for an
    application's."""

    def __init__(self, move: Move, since: WayBackStart, progress: Progress) -> None:
        super().__init__(move, progress)
        self.since = since
        self.noted: dict[tuple[str, bytes], tuple[TableDesign, Item]] = {}

    def _send(self, writes: list[Write]) -> None:
        for table, item in writes:
            key = key_bytes(table, item)
            self.noted[table.name, key] = (table, item)
            self.since.written.add(note_of(table.name, key, position_of(item)))
        super()._send(writes)


class _Cutover:
    """The steps of a cutover."""

    def __init__(
        self,
        move: Move,
        gate: TargetWriteBlock,
        report: CutoverResult,
        kinesis: str,
        progress: Progress,
    ) -> None:
        self.move = move
        self.gate = gate
        self.report = report
        self.kinesis = kinesis
        self.progress = progress
        self.fence: SourceFence = fence_of(move.origin)
        self.rows = RowMapper(move)
        self.since = WayBackStart()
        self.verified: VerifyReport | None = None

    def check(self, *, is_one_way: bool) -> None:
        """Checks everything that can be known before anything changes."""
        move = self.move
        if isinstance(move.log, NoLog):
            raise PartitaError(
                f"{move.folder.path} was loaded without a position in the log, so it is unknown"
                " what was written since; start over with `load --follow`."
            )
        self.report.fenced = [table.name for table in move.origin.tables]
        self.report.streams = [table.name for table in move.design.tables]
        self.report.one_way = self.rows.without_way_back()
        with move.origin.connect() as source:
            self.report.triggers = move.origin.triggers(source)
        if phase_of(move.state).name == BACKWARD:
            return
        self.verified = last_verified(move.folder, phase_of(move.state))
        check_unchanged(move, self.verified)
        if self.report.one_way and not is_one_way:
            raise PartitaError(
                "Not everything that is written at the target could be carried back: "
                + " ".join(self.report.one_way)
                + " Change the design, or go on with --one-way: a rollback is then refused once"
                " such rows have changed."
            )
        rejects = move.state.rejects()
        if rejects:
            raise PartitaError(
                f"{len(rejects)} rows make no item that the target accepts, and would be missing"
                f" there; correct them in the source first ({rejects[0][0]}: {rejects[0][3]})."
            )

    def run(self, wait_seconds: float) -> None:
        if phase_of(self.move.state).name == BACKWARD:
            # A kill came after the point of no return; the rest can be repeated.
            self._open_target()
            return
        was_closed = self.gate.is_closed
        try:
            self._switch_over(wait_seconds)
        except BaseException:
            self.open_source()
            if not was_closed and phase_of(self.move.state).name != BACKWARD:
                self.gate.open()
            raise

    def _say(self, step: str) -> None:
        self.progress(step, 0, 0)

    def open_source(self) -> None:
        """Opens the fence unless the target is authoritative; if the source does not answer, the
        note stays."""
        state = self.move.state
        if phase_of(state).name != BACKWARD and state.fact(UNTURNED, bool):
            with suppress(PartitaError):
                open_fence(self.move, self.fence)

    def _switch_over(self, wait_seconds: float) -> None:
        """Carries out the numbered steps of the module's description."""
        # Nobody may write at the target before it is authoritative. A target without policies
        # cannot be closed, which is accepted here.
        self._say("Closing the target for others")
        self.gate.close(is_forced=True)
        # Creating a trigger waits for open transactions, so it is done while writes are accepted.
        self._say("Giving the source its triggers")
        self.fence.install(wait_seconds)
        drain = _Drain(self.move, self.since, self.progress)
        self._say("Opening streams")
        streams = self._begin_streams()
        drain.run(drain.log_end())
        # What was written up to here is compared by a scan below, while the source takes writes;
        # only later writes have to be compared behind the closed fence.
        drain.noted.clear()
        self._say("Comparing what was written since the verification")
        self._compare_since()
        self._say("Catching up")
        self._catch_up(drain)
        self._say("Closing the source")
        note_fence(self.move)
        began = time.monotonic()
        self.fence.close(wait_seconds, self.progress)
        self.move.target.away_seconds_max = FENCED_AWAY_SECONDS_MAX
        drain.run(drain.log_end())
        self.report.changes = drain.applier.changes
        self._compare(drain.noted.values())
        self._commit(streams, began)
        self._open_target()
        self.report.refused_seconds = round(time.monotonic() - began, 3)

    def _begin_streams(self) -> list[ItemChangeStream]:
        """Opens the streams behind the move's own writes, and checks by markers that they work."""
        stored = self.move.state.fact(PLACES, dict[str, StreamCheckpoint]) or {}
        streams = []
        for table in self.move.design.tables:
            arn = self._destination(table) if self.kinesis else self._stream(table)
            stream = self._begin_stream(table, arn, stored.get(table.name))
            streams.append(stream)
        self._marked = time.monotonic()
        return streams

    def _begin_stream(
        self, table: TableDesign, arn: str, stored: StreamCheckpoint | None
    ) -> ItemChangeStream:
        """Opens one stream.

        After a rollback it is read on from the old place, whose earlier changes have been carried
        back. If that place is gone from the stream, only the move has written since, and the stream
        is read from now on.
        """
        target = self.move.target
        if stored is not None and stored.arn == arn:
            with suppress(StreamTrimmed):
                stream = open_stream(target, table, stored)
                self.since.seconds[table.name] = wait_for_marker(target, table, stream)
                return stream
        stream = open_stream_from_now(target, table, arn)
        self.since.seconds[table.name] = wait_for_marker(target, table, stream)
        return stream

    def _stream(self, table: TableDesign) -> str:
        state = self.move.state
        if not ensure_stream(self.move.target, table.name, is_made=False):
            made = {*(state.fact(STREAMS_MADE, list[str]) or []), table.name}
            with state.transaction():
                state.set_fact(STREAMS_MADE, sorted(made))
        return ensure_stream(self.move.target, table.name, is_made=True)

    def _destination(self, table: TableDesign) -> str:
        state, target = self.move.state, self.move.target
        if not destination_of(target, table.name, self.kinesis, is_made=False):
            made = state.fact(DESTINATIONS_MADE, dict[str, str]) or {}
            with state.transaction():
                arn = stream_arn(target, self.kinesis)
                state.set_fact(DESTINATIONS_MADE, {**made, table.name: arn})
        return destination_of(target, table.name, self.kinesis, is_made=True)

    def _catch_up(self, drain: _Drain) -> None:
        """Follows until so little is left that closing the fence takes no time, and the stream's
        clock has moved on from the marker."""
        for _ in range(CATCH_UP_ROUNDS):
            begun = time.monotonic()
            drain.run(drain.log_end())
            is_quick = time.monotonic() - begun < CATCH_UP_SECONDS
            if is_quick and time.monotonic() - self._marked > TICK_SECONDS:
                return
            if is_quick:
                time.sleep(CATCH_UP_SECONDS)

    def _compare_since(self) -> None:
        """Checks that items written since the verification are what their rows make."""
        verified = self.verified
        assert verified is not None
        check_unchanged(self.move, verified)
        for table in self.move.design.tables:
            for item in self._written_since(table, verified.position):
                if is_tombstone(item):
                    continue
                made = None
                with suppress(UnmappableItem):
                    number = self.rows.entity_of(table, item)
                    source = self.move.entities[number][1].source
                    key = self.rows.key_in(self.move.entities[number][1], item)
                    stored = self.move.state.find(source, key) if key is not None else None
                    if key is None:
                        # A guard or an aggregate: the next full verification compares it.
                        continue
                    made = (
                        self.move.items.item_of(number, stored.row) if stored is not None else None
                    )
                if made is None or item_digest(made) != item_digest(item):
                    raise self._differs(table, item)
                self.report.compared += 1

    def _written_since(self, table: TableDesign, position: int) -> Iterator[Item]:
        """Yields the items of a table that were written behind a position."""
        request: dict[str, Any] = {
            "TableName": table.name,
            "ConsistentRead": True,
            "FilterExpression": "attribute_not_exists(#p) OR #p > :p",
            "ExpressionAttributeNames": {"#p": POSITION},
            "ExpressionAttributeValues": {":p": {"N": str(position)}},
        }
        while True:
            answer = self.move.target.call("Scan", **request)
            yield from answer.get("Items", [])
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def _differs(self, table: TableDesign, item: Item) -> PartitaError:
        return PartitaError(
            f"An item of {table.name} is not what its row makes: {key_of(table, item)}; run"
            " `partita migrate verify`. The source takes writes, and nothing has changed."
        )

    def _compare(self, written: Iterable[tuple[TableDesign, Item]]) -> None:
        """Checks that the target has what was written since the last verification."""
        by_table: dict[str, list[tuple[TableDesign, Item]]] = {}
        for table, item in written:
            by_table.setdefault(table.name, []).append((table, item))
        for name, some in by_table.items():
            for start in range(0, len(some), BATCH_KEYS):
                self._compare_batch(name, some[start : start + BATCH_KEYS])

    def _compare_batch(self, name: str, some: list[tuple[TableDesign, Item]]) -> None:
        expected_items = {key_bytes(table, item): item for table, item in some}
        request = {
            name: {"Keys": [key_of(*written_item) for written_item in some], "ConsistentRead": True}
        }
        while request:
            try:
                answer = self.move.target.call("BatchGetItem", RequestItems=request)
            except ClientError as error:
                raise PartitaError(f"{self.move.target.endpoint} refused: {error}") from error
            for item in answer.get("Responses", {}).get(name, []):
                expected = expected_items.pop(key_bytes(some[0][0], item), None)
                if expected is None or item_digest(item) != item_digest(expected):
                    raise self._differs(some[0][0], item)
                self.report.compared += 1
            request = answer.get("UnprocessedKeys") or {}
        missing = [item for item in expected_items.values() if not is_tombstone(item)]
        if missing:
            raise PartitaError(
                f"{name} lacks {key_of(some[0][0], missing[0])}; run `partita migrate verify`. The"
                " source takes writes again, and nothing has changed."
            )

    def _commit(self, streams: list[ItemChangeStream], began: float) -> None:
        """Records that the target is authoritative, and where the way back begins."""
        state = self.move.state
        phase = phase_of(state)
        phase.name = BACKWARD
        phase.turns.append(
            AuthorityChange(
                step="cutover",
                at=time.time(),
                refused_seconds=round(time.monotonic() - began, 3),
                position=self.move.position,
                changes=self.report.changes,
            )
        )
        # The point of no return: with this commit the target is authoritative.
        with state.transaction():
            WayBackStore(state).forget()
            state.set_fact(PLACES, {stream.table: stream.places for stream in streams})
            state.set_fact(SINCE, self.since)
            state.set_fact(PHASE, phase)

    def _open_target(self) -> None:
        """Lets the target take writes, and then tells applications."""
        self.gate.open()
        self.fence.turn(TARGET)
        with self.move.state.transaction():
            self.move.state.remove_fact(UNTURNED)
        self.report.is_switched = True
