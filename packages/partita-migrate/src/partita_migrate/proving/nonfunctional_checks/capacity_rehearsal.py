"""Sends the stated rates and peaks to a server that enforces capacity by a clock of its own.

The requests are the model's, with values from the data. Nothing waits, because the test advances
the server's clock. When a second has more calls than a test can send, one of every n calls is sent,
against one n-th of the capacity. All items under the requested keys are loaded, so that a call
reads as much as it will in production.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any

from partita.client.client_errors import ClientError
from partita.database.item.attribute_values import Item
from partita_migrate.costing.capacity_estimate import TableOrIndex, units
from partita_migrate.designing.requests import exists_subqueries
from partita_migrate.designing.requests.item_locations import NotServed
from partita_migrate.designing.requests.read_planner import ReadPlanner
from partita_migrate.designing.requests.write_planner import written_with
from partita_migrate.handover.table_requests import described
from partita_migrate.model.design import READS, Design, PatternAccess, TableDesign
from partita_migrate.model.items.item_maker import ItemMaker
from partita_migrate.model.keys.key_formats import NotEncodable
from partita_migrate.model.volumes import Volumes
from partita_migrate.proving.nonfunctional_checks.rehearsal_items import (
    RecordingClient,
    RehearsalItems,
    RequestedKeys,
)
from partita_migrate.proving.parameter_sets.parameter_draw import ParameterDraw
from partita_migrate.proving.proof_run.proof_results import ProofCheck
from partita_migrate.proving.read_proofs.answer_rows import RequestNotPossible
from partita_migrate.proving.read_proofs.exists_filter import answer_of
from partita_migrate.proving.read_proofs.pattern_answer import PatternAnswer
from partita_migrate.proving.sandbox.design_tables import BATCH_ITEMS, is_accepted
from partita_migrate.proving.sandbox.private_dynamodb import (
    ClockedServer,
    DynamoDBClient,
    clocked_server,
)
from partita_migrate.proving.staged_items import StagedItems
from partita_migrate.row_store.row_store import primary_keys
from partita_migrate.row_store.staged_rows import StagedRows
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup
from partita_migrate.understanding.statements.pattern_statements import PatternStatements
from partita_migrate.understanding.statements.resolved_statements import NotExact, ResolvedQuery

ITEMS_MAX = 200_000
"""The most items that a rehearsal loads."""
SECONDS_MIN = 2
"""Enough for a partition, whose capacity counts by the second."""
SECONDS_MAX = 600
PEAK_SECONDS = 60
PEAK_TIMES = 2
IDLE_SECONDS = 300
"""Before a peak: a table saves its unused capacity for as long as this."""
TARGET = 0.7
"""The share of provisioned units that auto scaling aims to use."""
SCAN_UNITS = 1.5
"""How much more a Scan costs here: a table created on demand has four partitions instead of one,
and a Scan is rounded up in each of them."""
ROWS_DRAWN = 100
THROTTLED = ("ProvisionedThroughputExceededException", "ThrottlingException")
HOT = "KeyRange"
"""Part of the reason that a response gives when one partition throttles and its table would not."""

Call = Callable[[], None]
"""One call of a pattern, with all its requests."""


@dataclass
class CallOutcomes:
    """The outcome of the calls of one run."""

    calls: int = 0
    requests: int = 0
    requests_max: int = 0
    throttled: Counter[str] = field(default_factory=Counter)
    hot: Counter[str] = field(default_factory=Counter)
    refused: dict[str, str] = field(default_factory=dict)
    """By pattern, the server's message."""


@dataclass(frozen=True)
class RehearsalRun:
    """One rehearsal: rates for a number of seconds."""

    name: str
    rates: dict[str, float]
    """Calls per second, by pattern."""
    seconds: int
    idle_seconds: int
    """Idle time before it, in which a table saves capacity for a peak."""


class CapacityRehearsal:
    """Rehearses the patterns of a design."""

    def __init__(
        self,
        design: Design,
        patterns: list[AccessPattern],
        volumes: Volumes,
        staging: StagedRows,
        making: StagedItems,
        items: int,
        calls_max: int,
    ) -> None:
        """`items` is the number of items of the whole source, of which `making` may have a sample;
        `calls_max` limits each run."""
        self.items = items
        self.design = design
        self.patterns = patterns
        self.volumes = volumes
        self.staging = staging
        self.making = making
        self.calls_max = calls_max
        self.maker = ItemMaker(staging, primary_keys(volumes.inventory))
        self.chance = random.Random(13)

    def checks(self, endpoint: str | None, prefix: str) -> list[ProofCheck]:
        """Runs the rehearsals; `endpoint` is the server that has all items, in tables with that
        prefix."""
        requested = self._requested_keys(endpoint, prefix)
        with clocked_server() as clocked:
            server = DynamoDBClient(clocked.endpoint, is_retrying=False)
            try:
                loaded = self._load(server, clocked, requested)
                calls = self._calls(server)
                usual = {pattern.name: pattern.calls_per_second for pattern in self.patterns}
                peak = {pattern.name: _peak(pattern) for pattern in self.patterns}
                short = self._seconds(peak, calls, PEAK_SECONDS)
                runs = (
                    RehearsalRun(
                        "stated rates", usual, self._seconds(usual, calls, SECONDS_MAX), 1
                    ),
                    RehearsalRun(
                        f"a peak for a minute: as stated, else {PEAK_TIMES} times the rate",
                        peak,
                        short,
                        # For a shorter peak, proportionally less capacity may be saved.
                        IDLE_SECONDS * short // PEAK_SECONDS,
                    ),
                )
                return [self._run(pattern, server, clocked, calls, loaded) for pattern in runs]
            finally:
                server.close()

    def _seconds(self, rates: dict[str, float], calls: dict[str, list[Call]], most: int) -> int:
        """Returns how many seconds of these rates the limit of calls allows."""
        total = sum(rates[name] for name in calls)
        fit = int(self.calls_max / total) if total else most
        return min(max(fit, SECONDS_MIN), most)

    # Tables with items, and the units that the patterns need.

    def _requested_keys(self, endpoint: str | None, prefix: str) -> RequestedKeys:
        """Returns the keys that the runs will read; where one request leads to another, it is sent
        to find out."""
        server = RecordingClient(endpoint, self.design, prefix)
        single = {
            access.pattern for access in self.design.access if access.requests == 1 and access.key
        }
        single -= {
            access.pattern for access in self.design.access if access.for_each or access.keeps
        }
        try:
            for pattern, calls in self._calls(server, prefix, is_reading=True).items():
                server.is_sending = pattern not in single
                for call in calls:
                    with suppress(ClientError, NotEncodable, RequestNotPossible):
                        call()
        finally:
            server.close()
        return server.asked

    def _load(
        self, server: DynamoDBClient, clocked: ClockedServer, requested: RequestedKeys
    ) -> RehearsalItems:
        for table in self.design.tables:
            server.call("CreateTable", **described(table), BillingMode="PAY_PER_REQUEST")
        requested_items = (pair for pair in self.making.all_items() if requested.has(*pair))
        items = islice(requested_items, ITEMS_MAX)
        loaded = 0
        while chunk := list(islice(items, BATCH_ITEMS)):
            waiting: dict[str, list[Any]] = {}
            for name, item in chunk:
                waiting.setdefault(name, []).append({"PutRequest": {"Item": item}})
            while waiting:
                try:
                    answer = server.call("BatchWriteItem", RequestItems=waiting)
                    waiting = answer.get("UnprocessedItems", {})
                except ClientError as error:
                    if error.code not in THROTTLED:
                        raise
                if waiting:
                    clocked.advance(1)
            loaded += len(chunk)
        left = sum(1 for _ in requested_items)
        return RehearsalItems(loaded, left, self.items, is_sample=self.making.count() < self.items)

    def _provision(self, server: DynamoDBClient, share: float) -> None:
        """Provisions so much that the stated rates use the target's share of it."""
        needed = {
            str(TableOrIndex(resource.table, resource.index or "")): resource
            for resource in units(self.design, self.patterns, self.volumes).resources
        }

        rates = {resource.name: resource.calls_per_second for resource in self.patterns}
        scanned: dict[str, float] = {}
        for access in self.design.access:
            if access.request == "Scan":
                more = rates.get(access.pattern, 0.0) * SCAN_UNITS
                scanned[access.table] = scanned.get(access.table, 0.0) + more

        def throughput(*names: str) -> dict[str, int]:
            used = [needed[name] for name in names]
            read = sum(resource.read_units for resource in used) + sum(
                scanned.get(name, 0.0) for name in names
            )
            return {
                "ReadCapacityUnits": _provisioned_units(read * share),
                "WriteCapacityUnits": _provisioned_units(
                    sum(resource.write_units for resource in used) * share
                ),
            }

        for table in self.design.tables:
            local = [resource.name for resource in table.indexes if resource.kind == "local"]
            indexes = [
                {
                    "Update": {
                        "IndexName": resource.name,
                        "ProvisionedThroughput": throughput(
                            str(TableOrIndex(table.name, resource.name))
                        ),
                    }
                }
                for resource in table.indexes
                if resource.kind == "global"
            ]
            own = throughput(table.name, *(str(TableOrIndex(table.name, name)) for name in local))
            described_table = server.call("DescribeTable", TableName=table.name)["Table"]
            changes = _changes(described_table, own, indexes)
            if changes:
                server.call("UpdateTable", TableName=table.name, **changes)

    # Calls.

    def _calls(
        self, server: DynamoDBClient, prefix: str = "", *, is_reading: bool = False
    ) -> dict[str, list[Call]]:
        """Returns by pattern calls with values from all over the data."""
        statements = PatternStatements(SchemaLookup(self.volumes.inventory))
        planner = ReadPlanner(self.design, self.volumes.inventory)
        draw = ParameterDraw(self.staging, self.volumes.inventory)
        accesses: dict[str, list[PatternAccess]] = {}
        for access in self.design.access:
            accesses.setdefault(access.pattern, []).append(access)
        calls_by_pattern: dict[str, list[Call]] = {}
        for pattern in self.patterns:
            own = accesses.get(pattern.name, [])
            writes = [access for access in own if access.request not in (*READS, "TTL", "none")]
            if writes:
                if not is_reading:
                    is_new = pattern.operation == "insert"
                    calls_by_pattern[pattern.name] = list(
                        self._writes(server, writes, is_new=is_new)
                    )
            elif own and own[0].request in READS:
                try:
                    question = statements.of(pattern)
                    assert isinstance(question, ResolvedQuery)
                    calls = self._reads(server, planner, draw, question, own, prefix)
                    calls_by_pattern[pattern.name] = list(calls)
                except (NotExact, NotServed, RequestNotPossible):
                    continue
        return {name: calls for name, calls in calls_by_pattern.items() if calls}

    def _reads(
        self,
        server: DynamoDBClient,
        planner: ReadPlanner,
        draw: ParameterDraw,
        question: ResolvedQuery,
        accesses: Sequence[PatternAccess],
        prefix: str,
    ) -> Iterator[Call]:
        def made(subquestion: ResolvedQuery, own: Sequence[PatternAccess]) -> PatternAnswer:
            inventory = self.volumes.inventory
            return PatternAnswer(server, inventory, self.design, planner, subquestion, own, prefix)

        answering = answer_of(planner, question, accesses, made)
        finest = planner.finest(exists_subqueries.plain(question))
        drawn = list(draw.usual(question, finest, ROWS_DRAWN))
        if isinstance(server, RecordingClient):
            drawn = list(
                {repr(parameter_set.values): parameter_set for parameter_set in drawn}.values()
            )
        for parameter_set in drawn:
            yield lambda values=parameter_set.values: _drop_rows(answering.rows(values))  # type: ignore[misc]

    def _writes(
        self, server: DynamoDBClient, accesses: Sequence[PatternAccess], *, is_new: bool
    ) -> Iterator[Call]:
        """Yields writes that put the items of existing rows again, which costs as much as a delete.

        Inserts put them under new keys, so that they are new in every index too.
        """
        numbers = count(1)
        (first, *_) = accesses
        entities = [
            (home, entity)
            for access in accesses
            if (home := self.design.table(access.table)) is not None
            and (entity := home.entity(access.entity)) is not None
        ]
        entities += [pair for access in accesses for pair in written_with(self.design, access)]
        is_together = first.request == "TransactWriteItems" or bool(first.transaction)
        for row in self.staging.spread(entities[0][1].source if entities else "", ROWS_DRAWN):
            puts = []
            for home, entity in entities:
                try:
                    item = self.maker.item(entity, row)
                except NotEncodable:
                    continue
                if item is not None and is_accepted(home, item):
                    puts.append((home, item))
            if puts:
                yield lambda puts=puts: _put(  # type: ignore[misc]
                    server, puts, next(numbers) if is_new else 0, is_together
                )

    # Runs.

    def _run(
        self,
        run: RehearsalRun,
        server: DynamoDBClient,
        clocked: ClockedServer,
        calls: dict[str, list[Call]],
        loaded: RehearsalItems,
    ) -> ProofCheck:
        rates = {name: run.rates[name] for name in calls}
        total = sum(rates.values())
        share = min(self.calls_max / (total * run.seconds), 1.0) if total else 1.0
        self._provision(server, share)
        clocked.advance(run.idle_seconds)
        tally = CallOutcomes()
        # Patterns start at different fractions of a call, so that slow ones do not all come at
        # once.
        due = {pattern_name: self.chance.random() for pattern_name in rates}
        for _ in range(run.seconds):
            clocked.advance(1)
            for pattern, rate in rates.items():
                due[pattern] += rate * share
                while due[pattern] >= 1:
                    due[pattern] -= 1
                    self._call(pattern, server, self.chance.choice(calls[pattern]), tally)
        return _outcome(run, tally, share, loaded, len(calls))

    def _call(self, pattern: str, server: DynamoDBClient, call: Call, tally: CallOutcomes) -> None:
        before = server.calls
        try:
            call()
        except ClientError as error:
            if not _is_throttled(error):
                tally.refused.setdefault(pattern, str(error))
            else:
                tally.throttled[pattern] += 1
            if HOT in str(error.body):
                tally.hot[pattern] += 1
        except (NotEncodable, RequestNotPossible):
            pass
        sent = server.calls - before
        tally.calls += 1
        tally.requests += sent
        tally.requests_max = max(tally.requests_max, sent)


def _peak(pattern: AccessPattern) -> float:
    """Returns the peak that a pattern states, otherwise a multiple of its rate."""
    return pattern.peak_per_second or pattern.calls_per_second * PEAK_TIMES


def _outcome(
    run: RehearsalRun, tally: CallOutcomes, share: float, loaded: RehearsalItems, patterns: int
) -> ProofCheck:
    if not tally.calls:
        return ProofCheck(
            name=run.name, outcome="not done", detail="no pattern is called often enough."
        )
    lost = sum(tally.throttled.values())
    detail = (
        f"{run.seconds} seconds on the server's own clock, capacity enforced and provisioned for"
        f" {TARGET:.0%} use, {loaded}: {tally.calls:,} calls of {patterns} patterns,"
        f" {lost:,} throttled"
    )
    if lost:
        detail += f" ({_worst(tally.throttled)})"
    if tally.hot:
        detail += f"; hot partitions: {_worst(tally.hot)}"
    each = tally.requests / tally.calls
    detail += f"; {each:.2f} requests for a call on average, at most {tally.requests_max}"
    if round(1 / share) > 1:
        detail += (
            f"; one of every {1 / share:,.0f} calls was sent, against that share of the capacity,"
            " so no single partition was tested to its limit"
        )
    for pattern, message in tally.refused.items():
        detail += f"; {pattern!r} was refused: {message}"
    is_failed = bool(lost or tally.refused)
    return ProofCheck(
        name=run.name, outcome="failed" if is_failed else "passed", detail=f"{detail}."
    )


def _worst(counts: Counter[str]) -> str:
    return ", ".join(f"{name!r} {count:,}" for name, count in counts.most_common(3))


def _is_throttled(error: ClientError) -> bool:
    reasons = error.body.get("CancellationReasons", [])
    codes = {error.code, *(reason.get("Code") for reason in reasons if isinstance(reason, dict))}
    return bool(codes & {*THROTTLED, "ThrottlingError", "ProvisionedThroughputExceeded"})


def _changes(
    table: dict[str, Any], own: dict[str, int], indexes: list[dict[str, Any]]
) -> dict[str, Any]:
    """Returns the parameters of UpdateTable; it refuses values that do not change anything."""
    if table.get("BillingModeSummary", {}).get("BillingMode") == "PAY_PER_REQUEST":
        current_indexes: dict[str, Any] = {}
        changes: dict[str, Any] = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": own}
    else:
        current_indexes = {
            change["IndexName"]: change for change in table.get("GlobalSecondaryIndexes", [])
        }
        changes = {} if _has(table, own) else {"ProvisionedThroughput": own}
    updates = [
        change
        for change in indexes
        if not _has(
            current_indexes.get(change["Update"]["IndexName"], {}),
            change["Update"]["ProvisionedThroughput"],
        )
    ]
    return changes | ({"GlobalSecondaryIndexUpdates": updates} if updates else {})


def _has(resource: dict[str, Any], units: dict[str, int]) -> bool:
    current = resource.get("ProvisionedThroughput", {})
    return all(current.get(name) == amount for name, amount in units.items())


def _provisioned_units(amount: float) -> int:
    return max(math.ceil(round(amount / TARGET, 9)), 1)


def _put(
    server: DynamoDBClient, items: list[tuple[TableDesign, Item]], number: int, is_together: bool
) -> None:
    puts = [
        {"TableName": home.name, "Item": _renumbered(home, item, number)} for home, item in items
    ]
    if is_together:
        server.call("TransactWriteItems", TransactItems=[{"Put": put} for put in puts])
        return
    for put in puts:
        server.call("PutItem", **put)


def _renumbered(home: TableDesign, item: Item, number: int) -> Item:
    """Returns the item under a key that no row has; unchanged for the number 0."""
    name = (home.sort_key or home.partition_key).name
    if not number or "B" in item[name]:
        return item
    ((kind, content),) = item[name].items()
    return {**item, name: {kind: f"{content}~{number}" if kind == "S" else str(10**30 + number)}}


def _drop_rows(rows: object) -> None:
    """Drops the rows of a read."""
