"""The requests that serve a pattern, in the words of DynamoDB's API."""

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
    """`examples`: rows of the source by table, as `analyze` kept them."""

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
        keys = [_test(one, entity, item, items) for one in access.key]
        filters = [_test(one, entity, item, items) for one in access.filter]
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
        unchanged = [_test(one, entity, item, items) for one in access.filter]
        if verb != "insert":
            unchanged += self._guarded(access, entity, item)
        if verb == "delete":
            return [
                delete(table, item, access, unchanged),
                *(
                    delete(home, self._beside(home, one), None)
                    for home, one in written_with(self.design, access)
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
        said = (
            "Where it is refused, the row is there already, and stays." if _is_kept(pattern) else ""
        )
        return [
            put(table, item, access, is_new=not upsert, afterwards=said),
            *(
                put(home, self._beside(home, one), None, is_new=one.is_guard and not upsert)
                for home, one in written_with(self.design, access)
            ),
        ]

    def _beside(self, table: TableDesign, entity: Entity) -> Item:
        return items_of(self.examples, table, entity)[0]

    def _unique(self, access: PatternAccess) -> set[str]:
        """Columns whose values have items of their own."""
        guards = [one for _, one in written_with(self.design, access) if one.is_guard]
        made = [(guard, part) for guard in guards for part in guard.attributes]
        return {ref.column for one, part in made for ref in columns_of(one, part)}

    def _guarded(self, access: PatternAccess, entity: Entity, item: Item) -> list[RequestTest]:
        """Unique values that must still be those whose items are deleted with them."""
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
        """Of a unique value that changes, the old one is free again and the new one is taken."""
        found = []
        for table, one in written_with(self.design, access):
            old = self._beside(table, one)
            taken = changed_item(self.examples, one, pattern, self._unique(access))
            if one.is_guard and taken != old:
                found.append(delete(table, old, None))
                found.append(put(table, taken, None, is_new=True))
            elif not one.is_guard:
                found.append(put(table, old, None, is_new=False))
        return found


def _removed(entity: Entity, pattern: AccessPattern, after: Item) -> list[ItemAttribute]:
    """Keys of sparse indexes, where what is changed decides whether an item is in them."""
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
    """Whether a row that is there already stays as it is."""
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
        content["Key"] = {one.attribute: one.values[0] for one in key}
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
    """Whether all rows have to be there before the first can be taken."""


def left_to_the_application(access: PatternAccess) -> ApplicationWork:
    """Tests that no filter can make, an order that no key has, rows to skip."""
    members = asdict(access)
    parts = []
    tests = [f"{one.attribute} {one.comparison} {one.value}" for one in members.get("tested", [])]
    if tests:
        parts.append(f"keeps items with {' and '.join(tests)}")
    if sorts := members.get("sorts", []):
        parts.append(f"sorts them by {', '.join(sorts)}")
    if skips := members.get("skips", 0):
        parts.append(f"skips {skips}")
    first = members.get("first")
    if parts and first:
        parts.append(f"takes the first {first}")
    said = f"The application then {', '.join(parts)}." if parts else ""
    if together := members.get("transaction", ""):
        said = f"In one TransactWriteItems with all that belongs to {together!r}. {said}".strip()
    if any(BUCKET in one.value for one in access.key):
        said = f"Sent for each bucket in order, until there are enough rows. {said}".strip()
    if members.get("forbids"):
        said = f"The write that follows is not sent while this brings an item. {said}".strip()
    if members.get("alternative"):
        said = (
            "One of several requests: the application puts their rows together, each once, and"
            f" sorts them. {said}"
        ).strip()
    if members.get("is_distinct"):
        said = f"{said} It keeps one of the rows that come several times.".strip()
    if keeps := members.get("keeps"):
        stays = "brings an item" if keeps == "some" else "brings none"
        said = f"The row stays while this {stays}. {said}".strip()
    if members.get("for_each"):
        often = "for each item" if keeps else "once for each different key among the items"
        said = f"Sent {often} that the first request brings. {said}".strip()
    return ApplicationWork(said, bool(tests or sorts))


def _rows(access: PatternAccess, pattern: AccessPattern) -> int | None:
    members = asdict(access)
    most: int | None = members.get("first") or access.limit or pattern.limit
    return most + int(members.get("skips", 0)) if most else None
