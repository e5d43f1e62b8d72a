"""The non-functional part: rates and a peak on a virtual clock, many clients, a failing part.

Rates run through the buckets of the service, second by second, over partition keys as the rows have
them; nothing waits. Clients and failures run on the server, with the tables of the design.
"""

from __future__ import annotations

import math
import random
from collections import Counter

from partita.client.failures import ClientError
from partita.database.capacity.buckets import BURST_SECONDS, Bucket
from partita.database.item.values import Item
from partita.limits import PARTITION_READ_UNITS, PARTITION_WRITE_UNITS
from partita.migrate.costing.units import PatternUnits, Resource, units
from partita.migrate.model.design import Access, Design, TableDesign
from partita.migrate.model.key_texts import NotEncodable
from partita.migrate.model.making import ItemMaker
from partita.migrate.model.volumes import Volumes
from partita.migrate.proving.private_server import DynamoDB
from partita.migrate.proving.results import Check
from partita.migrate.proving.staging import Staging
from partita.migrate.understanding.patterns.access_patterns import AccessPattern

SECONDS = 600
PEAK_SECONDS = 60
PEAK_TIMES = 2
TARGET = 0.7
"""Of provisioned units that auto scaling aims to use."""
KEYS_DRAWN = 300
CALLS_A_SECOND_MAX = 20
"""More calls are drawn in packets."""
CLIENTS = 25
HOT = "a partition gives no more"
TABLE = "the table gives no more"
COUNTER = "partita_test_counter"
PROBE = "partita-test-probe"


class LoadTest:
    def __init__(
        self,
        design: Design,
        patterns: list[AccessPattern],
        volumes: Volumes,
        staging: Staging,
    ) -> None:
        self.design = design
        self.patterns = patterns
        self.volumes = volumes
        self.staging = staging
        inventory = volumes.inventory
        self.maker = ItemMaker(
            staging, {table.name: table.primary_key for table in inventory.tables}
        )
        self.chance = random.Random(13)

    def checks(self, server: DynamoDB, prefix: str) -> list[Check]:
        return [
            *self._rates(),
            _many_clients(server, self.design, prefix),
            _half_a_transaction(server, self.design, prefix),
        ]

    # Rates on a virtual clock.

    def _rates(self) -> list[Check]:
        counted = units(self.design, self.patterns, self.volumes)
        named = {one.name for one in self.patterns}
        accesses = [one for one in self.design.access if one.pattern in named]
        provisioned = {
            str(Resource(one.table, one.index or "")): (one.read_units, one.write_units)
            for one in counted.resources
        }
        return [
            self._run("stated rates", 1, accesses, counted.patterns, provisioned),
            self._run("a peak", PEAK_TIMES, accesses, counted.patterns, provisioned),
        ]

    def _run(
        self,
        name: str,
        times: int,
        accesses: list[Access],
        costs: list[PatternUnits],
        provisioned: dict[str, tuple[float, float]],
    ) -> Check:
        """Ten minutes at the stated rates, the last one at so many times of them."""
        self.buckets: dict[tuple[str, bool], Bucket] = {}
        keys = [self._keys(access) for access in accesses]
        asked = 0.0
        throttled: Counter[str] = Counter()
        hot: Counter[str] = Counter()
        for second in range(SECONDS):
            is_peak = times > 1 and second >= SECONDS - PEAK_SECONDS
            for access, cost, drawn in zip(accesses, costs, keys, strict=True):
                calls = self._calls(cost, times) if is_peak else cost.calls_per_second
                packets = min(_whole(calls, self.chance), CALLS_A_SECOND_MAX)
                for _ in range(packets):
                    # A rate below one a second is a whole call now and then.
                    each = max(calls / packets, 1.0)
                    asked += each
                    key = self.chance.choice(drawn)
                    refused = self._call(cost, each, key, provisioned, second)
                    if refused:
                        throttled[access.pattern] += round(each)
                    if refused == HOT:
                        hot[f"{cost.served_by} {key}"] += round(each)
        return _outcome(name, times, asked, throttled, hot, costs)

    def _calls(self, cost: PatternUnits, times: int) -> float:
        """At the peak that a pattern states; else so many times its rate."""
        peaks = {one.name: one.peak_per_second for one in self.patterns}
        return peaks.get(cost.pattern, 0.0) or cost.calls_per_second * times

    def _call(
        self,
        cost: PatternUnits,
        each: float,
        key: str,
        provisioned: dict[str, tuple[float, float]],
        second: int,
    ) -> str:
        """Takes the units of some calls of a pattern; empty when nothing throttles them."""
        is_read = bool(cost.read_units)
        amounts = {cost.served_by: cost.read_units} if is_read else cost.write_units
        taken: list[tuple[Bucket, float]] = []
        for place, amount in amounts.items():
            rate = provisioned.get(place, (0.0, 0.0))[0 if is_read else 1]
            bucket = self._bucket(place, is_read, rate, second, BURST_SECONDS)
            taken.append((bucket, amount / cost.calls_per_second * each))
        most = PARTITION_READ_UNITS if is_read else PARTITION_WRITE_UNITS
        one = self._bucket(f"{cost.served_by} {key}", is_read, most, second, 1)
        if one.tokens <= 0:
            return HOT
        if any(bucket.tokens <= 0 for bucket, _ in taken):
            return TABLE
        for bucket, amount in taken:
            bucket.take(amount)
        own = amounts.get(cost.served_by, 0.0)
        one.take(own / cost.calls_per_second * each if cost.calls_per_second else 0.0)
        return ""

    def _bucket(self, name: str, is_read: bool, rate: float, second: int, burst: int) -> Bucket:
        found = self.buckets.get((name, is_read))
        if found is None:
            provisioned = math.ceil(rate / TARGET) if burst > 1 else rate
            found = Bucket(max(provisioned, 1), 0.0, burst_seconds=burst)
            self.buckets[name, is_read] = found
        found.refill(second)
        return found

    def _keys(self, access: Access) -> list[str]:
        """Partition keys of the items that a request asks for, as often as rows have them."""
        table = self.design.table(access.table)
        entity = table.entity(access.entity) if table is not None else None
        if table is None or entity is None:
            return ["?"]
        index = table.index(access.index) if access.index else None
        attribute = entity.attribute((index or table).partition_key.name)
        found: list[str] = []
        for row in self.staging.spread(entity.source, KEYS_DRAWN):
            try:
                value = self.maker.value(entity, attribute, row) if attribute else None
            except NotEncodable:
                continue
            if value is not None:
                found.append(str(next(iter(value.values()))))
        return found or ["?"]


def _outcome(
    name: str,
    times: int,
    asked: float,
    throttled: Counter[str],
    hot: Counter[str],
    costs: list[PatternUnits],
) -> Check:
    lost = sum(throttled.values())
    detail = (
        f"{SECONDS} seconds on a virtual clock, provisioned for {TARGET:.0%} use:"
        f" {asked:,.0f} calls, {lost:,} throttled"
    )
    if throttled:
        worst = ", ".join(f"{one!r} {count:,}" for one, count in throttled.most_common(3))
        detail += f" ({worst})"
    if hot:
        detail += f"; hot partitions: {', '.join(one for one, _ in hot.most_common(3))}"
    requests = max((one.requests for one in costs), default=0)
    detail += f"; at most {requests:g} requests for a call."
    what = f"{name} for a minute: as stated, else {times} times the rate" if times > 1 else name
    return Check(name=what, outcome="failed" if lost else "passed", detail=detail)


def _whole(calls: float, chance: random.Random) -> int:
    """A rate below one a second is a call now and then."""
    return math.floor(calls) + (chance.random() < calls % 1)


def _any_item(server: DynamoDB, design: Design, prefix: str) -> tuple[TableDesign, Item] | None:
    for table in design.tables:
        found = server.call("Scan", TableName=prefix + table.name, Limit=1).get("Items", [])
        if found:
            return table, found[0]
    return None


def _many_clients(server: DynamoDB, design: Design, prefix: str) -> Check:
    """Many writers on one record lose none of their changes."""
    name = f"{CLIENTS} clients on one record"
    found = _any_item(server, design, prefix)
    if found is None:
        return Check(name=name, outcome="not done", detail="no item was loaded.")
    table, item = found
    target = {
        "TableName": prefix + table.name,
        "Key": {key.name: item[key.name] for key in table.keys},
    }
    counted = {
        **target,
        "UpdateExpression": "ADD #c :one",
        "ExpressionAttributeNames": {"#c": COUNTER},
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    server.call_all(("UpdateItem", dict(counted)) for _ in range(CLIENTS))
    locked = {
        **target,
        "UpdateExpression": "SET #c = :new",
        "ConditionExpression": "#c = :old",
        "ExpressionAttributeNames": {"#c": COUNTER},
        "ExpressionAttributeValues": {":new": {"N": "0"}, ":old": {"N": str(CLIENTS)}},
    }
    winners = server.try_all(("UpdateItem", dict(locked)) for _ in range(CLIENTS))
    server.call(
        "UpdateItem",
        **target,
        UpdateExpression="REMOVE #c",
        ExpressionAttributeNames={"#c": COUNTER},
    )
    is_right = winners == 1
    return Check(
        name=name,
        outcome="passed" if is_right else "failed",
        detail=(
            f"{CLIENTS} additions at once were all counted, and of {CLIENTS} conditional writes"
            f" (optimistic locking) {winners} won."
        ),
    )


def _half_a_transaction(server: DynamoDB, design: Design, prefix: str) -> Check:
    """A transaction of which one part fails changes nothing."""
    name = "a failing part"
    found = _any_item(server, design, prefix)
    if found is None:
        return Check(name=name, outcome="not done", detail="no item was loaded.")
    table, item = found
    place = prefix + table.name
    changed = {**item, PROBE: {"S": "half"}}
    calls = [
        {"Put": {"TableName": place, "Item": changed}},
        {
            "ConditionCheck": {
                "TableName": place,
                "Key": {
                    key.name: {key.type: "AAAA" if key.type == "B" else _nobody(key.type)}
                    for key in table.keys
                },
                "ConditionExpression": "attribute_exists(#k)",
                "ExpressionAttributeNames": {"#k": table.partition_key.name},
            }
        },
    ]
    try:
        server.call("TransactWriteItems", TransactItems=calls)
        return Check(name=name, outcome="failed", detail="it was carried out all the same.")
    except ClientError as error:
        said = error.code
    key = {one.name: item[one.name] for one in table.keys}
    after = server.call("GetItem", TableName=place, Key=key, ConsistentRead=True).get("Item")
    return Check(
        name=name,
        outcome="passed" if after == item else "failed",
        detail=f"a transaction whose second part fails ({said}) leaves the first undone.",
    )


def _nobody(kind: str) -> str:
    return "-987654321" if kind == "N" else "~nobody"
