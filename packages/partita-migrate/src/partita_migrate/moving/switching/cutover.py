"""Stage `cutover`: the target becomes authoritative, and loses nothing on the way.

1. What can be done before: triggers, streams, all that is left to follow.
2. The fence is closed: the source refuses writes, and nobody has one that is not committed.
3. The log is followed to its end, and what was written since is compared.
4. The switch is turned. From here on the way back is followed.

Until 4, a failure opens the fence again, and a kill leaves it closed, which `status` tells: run the
command again, or `rollback`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

from msgspec import field

from partita.client import ClientError
from partita.database.item.values import Item
from partita.errors import PartitaError
from partita_migrate.folder import Folder
from partita_migrate.model.design import TableDesign
from partita_migrate.moving.back.following import PLACES, SINCE, Since, note_of
from partita_migrate.moving.back.kinesis import (
    begun_stream,
    destination_of,
    opened_stream,
    stream_arn,
)
from partita_migrate.moving.back.markers import wait_for_marker
from partita_migrate.moving.back.records import ChangeStream, Places, StreamTooOld, stream_of
from partita_migrate.moving.back.rows import CannotReturn, Rows
from partita_migrate.moving.back.store import BackStore, key_bytes
from partita_migrate.moving.fences import fence_of
from partita_migrate.moving.fences.fence import TARGET, Fence
from partita_migrate.moving.follow import Follower
from partita_migrate.moving.items import item_digest
from partita_migrate.moving.logs.unlogged import Unlogged
from partita_migrate.moving.moves import Move
from partita_migrate.moving.positions import POSITION, is_tombstone, key_of, position_of
from partita_migrate.moving.sending import Write
from partita_migrate.moving.switching.closing import TargetGate
from partita_migrate.moving.switching.phases import (
    BACKWARD,
    DESTINATIONS_MADE,
    PHASE,
    STREAMS_MADE,
    UNTURNED,
    Turn,
    phase_of,
)
from partita_migrate.moving.switching.steps import (
    FENCED_AWAY_SECONDS_MAX,
    Switched,
    note_fence,
    open_fence,
    switching,
)
from partita_migrate.moving.verify import Verified, check_unchanged, last_verified
from partita_migrate.progress import Progress, silent

WAIT_SECONDS = 30.0
TICK_SECONDS = 1.1
"""After this a stream's clock, which counts seconds, has moved on."""
BATCH_KEYS = 100
CATCH_UP_ROUNDS = 10
CATCH_UP_SECONDS = 0.2


class CutOver(Switched, kw_only=True, omit_defaults=True):
    compared: int = 0
    fenced: list[str] = field(default_factory=list)
    streams: list[str] = field(default_factory=list)
    one_way: list[str] = field(default_factory=list)
    """Tables whose rows have no way back."""
    triggers: list[str] = field(default_factory=list)
    """The source's own, which the way back fires."""


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
) -> CutOver:
    """`kinesis`: the name or ARN of a stream that keeps changes for the way back for longer than
    the target's own streams do."""
    with switching(
        "cutover", CutOver, folder, endpoint, region=region, is_dry_run=is_dry_run, ask=ask
    ) as (move, gate, found):
        stage = _Cutover(move, gate, found, kinesis or "", progress)
        try:
            stage.check(is_one_way=is_one_way)
            if not is_dry_run:
                stage.run(wait_seconds)
        except BaseException:
            if not is_dry_run:
                stage.open_source()
            raise
    return found


class _Drain(Follower):
    """Follows, and notes what it writes."""

    def __init__(self, move: Move, since: Since, progress: Progress) -> None:
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
    def __init__(
        self, move: Move, gate: TargetGate, found: CutOver, kinesis: str, progress: Progress
    ) -> None:
        self.move = move
        self.gate = gate
        self.found = found
        self.kinesis = kinesis
        self.progress = progress
        self.fence: Fence = fence_of(move.origin)
        self.rows = Rows(move)
        self.since = Since()
        self.verified: Verified | None = None

    def check(self, *, is_one_way: bool) -> None:
        """What can be known before anything changes."""
        move = self.move
        if isinstance(move.log, Unlogged):
            raise PartitaError(
                f"{move.folder.path} was loaded without noting where the log was, so that nothing"
                " tells what was written since; load anew with --follow."
            )
        self.found.fenced = [table.name for table in move.origin.tables]
        self.found.streams = [table.name for table in move.design.tables]
        self.found.one_way = self.rows.without_way_back()
        with move.origin.connect() as source:
            self.found.triggers = move.origin.triggers(source)
        if phase_of(move.state).name == BACKWARD:
            return
        self.verified = last_verified(move.folder, phase_of(move.state))
        check_unchanged(move, self.verified)
        if self.found.one_way and not is_one_way:
            raise PartitaError(
                "Not all that is written at the target could come back: "
                + " ".join(self.found.one_way)
                + " Change the design, or go on with --one-way: a rollback is then refused when"
                " such rows have changed."
            )
        rejects = move.state.rejects()
        if rejects:
            raise PartitaError(
                f"{len(rejects)} rows make no item that the target takes, and would be missing"
                f" there; correct them in the source first ({rejects[0][0]}: {rejects[0][3]})."
            )

    def run(self, wait_seconds: float) -> None:
        if phase_of(self.move.state).name == BACKWARD:
            # Killed behind the point of no return: what is left is said again.
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
        """Unless the target is authoritative. Where the source gives no answer, the note stays."""
        state = self.move.state
        if phase_of(state).name != BACKWARD and state.fact(UNTURNED, bool):
            with suppress(PartitaError):
                open_fence(self.move, self.fence)

    def _switch_over(self, wait_seconds: float) -> None:
        # Nobody writes at the target before it is authoritative, where that can be seen to.
        self._say("Closing the target for others")
        self.gate.close(is_forced=True)
        self._say("Giving the source its triggers")
        self.fence.install(wait_seconds)
        drain = _Drain(self.move, self.since, self.progress)
        self._say("Opening streams")
        streams = self._begin_streams()
        drain.run(drain.log_end())
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
        self.found.changes = drain.applier.changes
        self._compare(drain.noted.values())
        self._commit(streams, began)
        self._open_target()
        self.found.refused_seconds = round(time.monotonic() - began, 3)

    def _begin_streams(self) -> list[ChangeStream]:
        """Read up to here, where the move alone has written, and seen to work."""
        known = self.move.state.fact(PLACES, dict[str, Places]) or {}
        streams = []
        for table in self.move.design.tables:
            arn = self._destination(table) if self.kinesis else self._stream(table)
            stream = self._begin_stream(table, arn, known.get(table.name))
            streams.append(stream)
        self._marked = time.monotonic()
        return streams

    def _begin_stream(self, table: TableDesign, arn: str, known: Places | None) -> ChangeStream:
        """After a rollback it goes on from where it was read: what was written before that has gone
        back. Where that is too long ago, only the move has written what is left."""
        target = self.move.target
        if known is not None and known.arn == arn:
            with suppress(StreamTooOld):
                stream = opened_stream(target, table, known)
                self.since.seconds[table.name] = wait_for_marker(target, table, stream)
                return stream
        stream = begun_stream(target, table, arn)
        self.since.seconds[table.name] = wait_for_marker(target, table, stream)
        return stream

    def _stream(self, table: TableDesign) -> str:
        state = self.move.state
        if not stream_of(self.move.target, table.name, is_made=False):
            made = {*(state.fact(STREAMS_MADE, list[str]) or []), table.name}
            with state.transaction():
                state.set_fact(STREAMS_MADE, sorted(made))
        return stream_of(self.move.target, table.name, is_made=True)

    def _destination(self, table: TableDesign) -> str:
        state, target = self.move.state, self.move.target
        if not destination_of(target, table.name, self.kinesis, is_made=False):
            made = state.fact(DESTINATIONS_MADE, dict[str, str]) or {}
            with state.transaction():
                arn = stream_arn(target, self.kinesis)
                state.set_fact(DESTINATIONS_MADE, {**made, table.name: arn})
        return destination_of(target, table.name, self.kinesis, is_made=True)

    def _catch_up(self, drain: _Drain) -> None:
        """Until there is so little left that nobody waits for it, and the stream's clock has gone
        on from the marker."""
        for _ in range(CATCH_UP_ROUNDS):
            begun = time.monotonic()
            drain.run(drain.log_end())
            is_quick = time.monotonic() - begun < CATCH_UP_SECONDS
            if is_quick and time.monotonic() - self._marked > TICK_SECONDS:
                return
            if is_quick:
                time.sleep(CATCH_UP_SECONDS)

    def _compare_since(self) -> None:
        """Items that were written since the verification are what rows make."""
        verified = self.verified
        assert verified is not None
        check_unchanged(self.move, verified)
        for table in self.move.design.tables:
            for item in self._written_since(table, verified.position):
                if is_tombstone(item):
                    continue
                made = None
                with suppress(CannotReturn):
                    number = self.rows.entity_of(table, item)
                    source = self.move.homes[number][1].source
                    key = self.rows.key_in(self.move.homes[number][1], item)
                    kept = self.move.state.find(source, key) if key is not None else None
                    if key is None:
                        # A guard or an aggregate: the next full verification compares it.
                        continue
                    made = self.move.items.made(number, kept.row) if kept is not None else None
                if made is None or item_digest(made) != item_digest(item):
                    raise self._differs(table, item)
                self.found.compared += 1

    def _written_since(self, table: TableDesign, position: int) -> Iterator[Item]:
        asked: dict[str, Any] = {
            "TableName": table.name,
            "ConsistentRead": True,
            "FilterExpression": "attribute_not_exists(#p) OR #p > :p",
            "ExpressionAttributeNames": {"#p": POSITION},
            "ExpressionAttributeValues": {":p": {"N": str(position)}},
        }
        while True:
            answer = self.move.target.call("Scan", **asked)
            yield from answer.get("Items", [])
            if "LastEvaluatedKey" not in answer:
                return
            asked["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def _differs(self, table: TableDesign, item: Item) -> PartitaError:
        return PartitaError(
            f"An item of {table.name} is not what its row makes: {key_of(table, item)}; run"
            " `partita migrate verify`. The source takes writes, and nothing has changed."
        )

    def _compare(self, written: Iterable[tuple[TableDesign, Item]]) -> None:
        """What was written since the last verification is there."""
        by_table: dict[str, list[tuple[TableDesign, Item]]] = {}
        for table, item in written:
            by_table.setdefault(table.name, []).append((table, item))
        for name, some in by_table.items():
            for start in range(0, len(some), BATCH_KEYS):
                self._compare_batch(name, some[start : start + BATCH_KEYS])

    def _compare_batch(self, name: str, some: list[tuple[TableDesign, Item]]) -> None:
        wanted = {key_bytes(table, item): item for table, item in some}
        asked = {name: {"Keys": [key_of(*one) for one in some], "ConsistentRead": True}}
        while asked:
            try:
                answer = self.move.target.call("BatchGetItem", RequestItems=asked)
            except ClientError as error:
                raise PartitaError(f"{self.move.target.endpoint} refused: {error}") from error
            for item in answer.get("Responses", {}).get(name, []):
                expected = wanted.pop(key_bytes(some[0][0], item), None)
                if expected is None or item_digest(item) != item_digest(expected):
                    raise self._differs(some[0][0], item)
                self.found.compared += 1
            asked = answer.get("UnprocessedKeys") or {}
        missing = [item for item in wanted.values() if not is_tombstone(item)]
        if missing:
            raise PartitaError(
                f"{name} lacks {key_of(some[0][0], missing[0])}; run `partita migrate verify`. The"
                " source takes writes again, and nothing has changed."
            )

    def _commit(self, streams: list[ChangeStream], began: float) -> None:
        state = self.move.state
        phase = phase_of(state)
        phase.name = BACKWARD
        phase.turns.append(
            Turn(
                step="cutover",
                at=time.time(),
                refused_seconds=round(time.monotonic() - began, 3),
                position=self.move.position,
                changes=self.found.changes,
            )
        )
        with state.transaction():
            BackStore(state).forget()
            state.set_fact(PLACES, {stream.table: stream.places for stream in streams})
            state.set_fact(SINCE, self.since)
            state.set_fact(PHASE, phase)

    def _open_target(self) -> None:
        """The target takes writes, and then applications are told."""
        self.gate.open()
        self.fence.turn(TARGET)
        with self.move.state.transaction():
            self.move.state.remove_fact(UNTURNED)
        self.found.is_switched = True
