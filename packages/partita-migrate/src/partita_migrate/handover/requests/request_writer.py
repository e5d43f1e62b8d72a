"""Writes the requests that serve a pattern, in the form of DynamoDB's API."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec.structs import asdict

from partita.database.item.attribute_values import Item
from partita_migrate.designing.requests.item_locations import own_attributes
from partita_migrate.designing.requests.write_planner import written_with
from partita_migrate.handover.requests.example_values import (
    changed_item,
    compared,
    example_of,
    items_of,
    shards,
)
from partita_migrate.handover.requests.expression_placeholders import (
    WITHOUT_VALUE,
    ExpressionPlaceholders,
)
from partita_migrate.handover.requests.pattern_request import PatternRequest, RequestTest
from partita_migrate.handover.requests.write_calls import (
    KEPT,
    delete,
    put,
    transaction,
    update,
)
from partita_migrate.model.design import (
    READS,
    AccessCondition,
    Design,
    Entity,
    ItemAttribute,
    PatternAccess,
    TableDesign,
    columns_of,
)
from partita_migrate.model.items.row_conditions import parse_condition
from partita_migrate.model.keys.date_buckets import BUCKET
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.schema.column_refs import ColumnRef


class RequestWriter:
    """Makes requests with values of `examples`, which are rows of the source by table."""

    def __init__(self, design: Design, examples: dict[str, list[Item]]) -> None:
        self.design = design
        self.examples = examples

    def requests(self, access: PatternAccess, pattern: AccessPattern) -> list[PatternRequest]:
        table = self.design.table(access.table)
        entity = table.entity(access.entity) if table else None
        if table is None or entity is None:
            return []
        if access.request in READS:
            return self._reads(access, pattern, table, entity)
        if access.request in ("TTL", "none"):
            return []
        parts = self._writes(access, pattern, table, entity)
        return [transaction(parts)] if access.request == "TransactWriteItems" else parts

    # Reads.

    def _reads(
        self, access: PatternAccess, pattern: AccessPattern, table: TableDesign, entity: Entity
    ) -> list[PatternRequest]:
        items = items_of(self.examples, table, entity)
        item = example_of(access, items)
        keys = [_test(condition, entity, item, items) for condition in access.key]
        filters = [_test(condition, entity, item, items) for condition in access.filter]
        if not keys:
            return [_read("Scan", access, pattern, table, [], filters)]
        first, rest = keys[0], keys[1:]
        return [
            _read(
                access.request,
                access,
                pattern,
                table,
                [RequestTest(attribute=first.attribute, comparison="=", values=[value],
                      template=first.template), *rest],
                filters,
            )
            for value in shards(entity.attribute(first.attribute), first.values[0])
        ]  # fmt: skip

    # Writes.

    def _writes(
        self, access: PatternAccess, pattern: AccessPattern, table: TableDesign, entity: Entity
    ) -> list[PatternRequest]:
        items = items_of(self.examples, table, entity)
        item = items[0]
        verb = _verb(access, pattern)
        unchanged = [_test(condition, entity, item, items) for condition in access.filter]
        if verb != "insert":
            unchanged += self._guarded(access, entity, item)
        if verb == "delete":
            return [
                delete(table, item, access, unchanged),
                *(
                    delete(home, self._beside(home, other), None)
                    for home, other in written_with(self.design, access)
                ),
            ]
        if verb == "update":
            after = changed_item(self.examples, entity, pattern, self._unique(access))
            changed = {name: value for name, value in after.items() if item.get(name) != value}
            removed = _removed(entity, pattern, after)
            return [
                update(table, item, changed, access, removed, unchanged),
                *self._written_with_update(access, pattern),
            ]
        upsert = _is_upsert(pattern)
        afterwards = KEPT if _is_kept(pattern) else ""
        return [
            put(table, item, access, is_new=not upsert, afterwards=afterwards),
            *(
                put(home, self._beside(home, other), None, is_new=other.is_guard and not upsert)
                for home, other in written_with(self.design, access)
            ),
        ]

    def _beside(self, table: TableDesign, entity: Entity) -> Item:
        return items_of(self.examples, table, entity)[0]

    def _unique(self, access: PatternAccess) -> set[str]:
        """Returns the columns whose values are kept unique by guard items."""
        guards = [other for _, other in written_with(self.design, access) if other.is_guard]
        made = [(guard, part) for guard in guards for part in guard.attributes]
        return {ref.column for guard, part in made for ref in columns_of(guard, part)}

    def _guarded(self, access: PatternAccess, entity: Entity, item: Item) -> list[RequestTest]:
        """Returns conditions that the unique values have not changed since they were read: the
        transaction deletes their guard items."""
        own = own_attributes(entity)
        refs = {ColumnRef(entity.source, name) for name in self._unique(access)}
        return [
            RequestTest(
                attribute=own[ref],
                comparison="=" if own[ref] in item else "not_exists",
                values=[item[own[ref]]] if own[ref] in item else [],
                template="the value that was read",
            )
            for ref in sorted(refs, key=str)
            if ref in own
        ]

    def _written_with_update(
        self, access: PatternAccess, pattern: AccessPattern
    ) -> list[PatternRequest]:
        """Returns the requests beside an update. The guard of an old unique value is deleted, and
        one for the new value is put."""
        requests = []
        for table, other in written_with(self.design, access):
            old = self._beside(table, other)
            new = changed_item(self.examples, other, pattern, self._unique(access))
            if other.is_guard and new != old:
                requests.append(delete(table, old, None))
                requests.append(put(table, new, None, is_new=True))
            elif not other.is_guard:
                requests.append(put(table, old, None, is_new=False))
        return requests


def _removed(entity: Entity, pattern: AccessPattern, after: Item) -> list[ItemAttribute]:
    """Returns key attributes of sparse indexes that the changed item no longer has."""
    names = {ColumnRef.parse(name) for name in pattern.columns}
    return [
        attribute
        for attribute in entity.attributes
        if (condition := parse_condition(attribute.when)) is not None
        and ColumnRef(entity.source, condition.column) in names
        and attribute.name not in after
    ]


def _verb(access: PatternAccess, pattern: AccessPattern) -> str:
    named = {"PutItem": "insert", "UpdateItem": "update", "DeleteItem": "delete"}
    return named.get(access.request, pattern.operation)


def _is_kept(pattern: AccessPattern) -> bool:
    """True when an existing row is left as it is."""
    text = " ".join((pattern.statement or "").upper().split())
    return text.startswith(("INSERT IGNORE", "INSERT OR IGNORE")) or text.endswith("DO NOTHING")


def _is_upsert(pattern: AccessPattern) -> bool:
    text = (pattern.statement or "").upper()
    return not _is_kept(pattern) and any(
        words in text for words in ("ON CONFLICT", "ON DUPLICATE KEY", "REPLACE INTO")
    )


def _test(condition: AccessCondition, entity: Entity, item: Item, items: list[Item]) -> RequestTest:
    comparison: str = condition.comparison
    return RequestTest(
        attribute=condition.attribute,
        comparison=comparison,
        values=[] if comparison in WITHOUT_VALUE else compared(condition, entity, item, items),
        template=condition.value,
    )


# The API's own members.


def _read(
    operation: str,
    access: PatternAccess,
    pattern: AccessPattern,
    table: TableDesign,
    key: list[RequestTest],
    filters: list[RequestTest],
) -> PatternRequest:
    content: dict[str, Any] = {"TableName": table.name}
    if access.index:
        content["IndexName"] = access.index
    if operation == "GetItem":
        content["Key"] = {test.attribute: test.values[0] for test in key}
    else:
        expressions = ExpressionPlaceholders()
        if key:
            content["KeyConditionExpression"] = expressions.joined(key, "k")
        if filters:
            content["FilterExpression"] = expressions.joined(filters, "f")
        content |= expressions.members()
    if pattern.is_consistent:
        content["ConsistentRead"] = True
    is_backwards = access.is_descending and operation == "Query"
    if is_backwards:
        content["ScanIndexForward"] = False
    rest = left_to_the_application(access)
    home = table.index(access.index) if access.index else None
    sort = (home or table).sort_key
    return PatternRequest(
        operation=operation,
        input=content,
        table=table.name,
        index=access.index,
        key=key,
        filter=filters,
        descending_by=sort.name if sort and is_backwards else "",
        rows_max=None if operation == "GetItem" or rest.needs_all else _rows(access, pattern),
        afterwards=rest.text,
    )


class ApplicationWork(NamedTuple):
    text: str
    needs_all: bool
    """True when the application needs all rows before it can take the first one."""


def left_to_the_application(access: PatternAccess) -> ApplicationWork:
    """Describes what the application does itself: tests, sorting, skipping rows."""
    members = asdict(access)
    parts = []
    tests = [
        f"{test.attribute} {test.comparison} {test.value}" for test in members.get("tested", [])
    ]
    if tests:
        parts.append(f"keeps items with {' and '.join(tests)}")
    if sorts := members.get("sorts", []):
        parts.append(f"sorts them by {', '.join(sorts)}")
    if skips := members.get("skips", 0):
        parts.append(f"skips {skips}")
    first = members.get("first")
    if parts and first:
        parts.append(f"takes the first {first}")
    sentences = f"The application then {', '.join(parts)}." if parts else ""
    if together := members.get("transaction", ""):
        sentences = (
            f"Sent in one TransactWriteItems with everything of {together!r}. {sentences}".strip()
        )
    if any(BUCKET in condition.value for condition in access.key):
        sentences = (
            f"Sent for each bucket in order, until there are enough rows. {sentences}".strip()
        )
    if members.get("forbids"):
        sentences = (
            f"The write that follows is not sent if this returns an item. {sentences}".strip()
        )
    if members.get("alternative"):
        sentences = (
            "One of several requests: the application merges their rows, drops duplicates, and"
            f" sorts them. {sentences}"
        ).strip()
    if members.get("is_distinct"):
        sentences = f"{sentences} It drops duplicate rows.".strip()
    if keeps := members.get("keeps"):
        stays = "returns an item" if keeps == "some" else "returns nothing"
        sentences = f"The row stays in the answer if this {stays}. {sentences}".strip()
    if members.get("for_each"):
        often = "for each item" if keeps else "once for each different key among the items"
        sentences = f"Sent {often} that the first request returns. {sentences}".strip()
    return ApplicationWork(sentences, bool(tests or sorts))


def _rows(access: PatternAccess, pattern: AccessPattern) -> int | None:
    members = asdict(access)
    most: int | None = members.get("first") or access.limit or pattern.limit
    return most + int(members.get("skips", 0)) if most else None
