"""The requests that serve a pattern, in the words of DynamoDB's API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import asdict

from partita.database.item.values import AttributeValue, Item
from partita.migrate.designing.requests.writes import written_with
from partita.migrate.handover.requests.values import (
    OTHER_NUMBER,
    changed_item,
    compared,
    example_of,
    items_of,
    shards,
)
from partita.migrate.model.buckets import BUCKET
from partita.migrate.model.design import (
    READS,
    Access,
    Attribute,
    Condition,
    Design,
    Entity,
    TableDesign,
)
from partita.migrate.model.row_conditions import parse_condition
from partita.migrate.model.sample_items import sample_item
from partita.migrate.model.templates import template_fields
from partita.migrate.understanding.patterns.access_patterns import AccessPattern
from partita.migrate.understanding.schema.collations import FOLDINGS, file_of
from partita.migrate.understanding.schema.column_refs import Ref

COMPARISONS: dict[str, Callable[[str, list[str]], str]] = {
    "between": lambda name, values: f"{name} BETWEEN {values[0]} AND {values[-1]}",
    "begins_with": lambda name, values: f"begins_with({name}, {values[0]})",
    "in": lambda name, values: f"{name} IN ({', '.join(values)})",
    # NULL, which an item does not have, is in no list and different from nothing.
    "not in": lambda name, values: (
        f"(attribute_exists({name}) AND NOT {name} IN ({', '.join(values)}))"
    ),
    "<>": lambda name, values: f"(attribute_exists({name}) AND {name} <> {values[0]})",
    "exists": lambda name, values: f"attribute_exists({name})",
    "not_exists": lambda name, values: f"attribute_not_exists({name})",
}
"""All others stand between the name and the value."""
WITHOUT_VALUE = ("exists", "not_exists")


class Test(Struct, frozen=True, kw_only=True):
    """A condition with its values."""

    attribute: str
    comparison: str
    values: list[AttributeValue]
    template: str = ""


class Request(Struct, frozen=True, kw_only=True):
    """One request: what the API takes, and the same in parts, from which PartiQL is written."""

    operation: str
    input: dict[str, Any]
    table: str
    index: str | None = None
    key: list[Test] = field(default_factory=list)
    filter: list[Test] = field(default_factory=list)
    item: Item = field(default_factory=dict)
    """What is put or set."""
    removed: list[str] = field(default_factory=list)
    """Attributes that go, because their condition no longer holds."""
    must: str = ""
    """Whether the item must, or must not, be there before: exists, not_exists."""
    descending_by: str = ""
    """The sort key, where the last come first."""
    rows_max: int | None = None
    """How many the caller wants, over all pages."""
    afterwards: str = ""
    """What is left to the application."""
    parts: list[Request] = field(default_factory=list)
    """Of a transaction."""

    @property
    def made_of(self) -> list[tuple[str, str]]:
        """Attributes whose values the application makes of what it knows, with the template.

        In one line, as a comment needs it: a column may be called anything.
        """
        return [
            (one.attribute, " ".join(one.template.split()))
            for one in [*self.key, *self.filter]
            if "{" in one.template
        ]

    @property
    def comments(self) -> list[str]:
        made = [f"{name} is made as {text}" for name, text in self.made_of]
        fields = [part for _, text in self.made_of for part in template_fields(text)]
        folds = dict.fromkeys(part.format for part in fields if part.format in FOLDINGS)
        made += [f"{one}: each letter becomes what {file_of(one)} has for it" for one in folds]
        return [*made, *([" ".join(self.afterwards.split())] if self.afterwards else [])]


class RequestWriter:
    """`examples`: rows of the source by table, as `analyze` kept them."""

    def __init__(self, design: Design, examples: dict[str, list[Item]]) -> None:
        self.design = design
        self.examples = examples

    def requests(self, access: Access, pattern: AccessPattern) -> list[Request]:
        table = self.design.table(access.table)
        entity = table.entity(access.entity) if table else None
        if table is None or entity is None:
            return []
        if access.request in READS:
            return self._reads(access, pattern, table, entity)
        if access.request in ("TTL", "none"):
            return []
        parts = self._writes(access, pattern, table, entity)
        return [_transaction(parts)] if access.request == "TransactWriteItems" else parts

    # Reads.

    def _reads(
        self, access: Access, pattern: AccessPattern, table: TableDesign, entity: Entity
    ) -> list[Request]:
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
                [Test(attribute=first.attribute, comparison="=", values=[value],
                      template=first.template), *rest],
                filters,
            )
            for value in shards(entity.attribute(first.attribute), first.values[0])
        ]  # fmt: skip

    # Writes.

    def _writes(
        self, access: Access, pattern: AccessPattern, table: TableDesign, entity: Entity
    ) -> list[Request]:
        items = items_of(self.examples, table, entity)
        item = items[0]
        verb = _verb(access, pattern)
        if verb == "delete":
            return [
                _delete(table, item, access),
                *(
                    _delete(home, self._beside(home, one), None)
                    for home, one in written_with(self.design, access)
                ),
            ]
        if verb == "update":
            after = changed_item(self.examples, entity, pattern, 0)
            changed = {name: value for name, value in after.items() if item.get(name) != value}
            removed = _removed(entity, pattern, after)
            return [
                _update(table, item, changed, access, removed),
                *self._written_with_update(access),
            ]
        upsert = _is_upsert(pattern)
        return [
            _put(table, item, access, is_new=not upsert),
            *(
                _put(home, self._beside(home, one), None, is_new=one.is_guard and not upsert)
                for home, one in written_with(self.design, access)
            ),
        ]

    def _beside(self, table: TableDesign, entity: Entity) -> Item:
        return items_of(self.examples, table, entity)[0]

    def _written_with_update(self, access: Access) -> list[Request]:
        """Of a unique value that changes, the old one is free again and the new one is taken."""
        found = []
        for table, one in written_with(self.design, access):
            old = self._beside(table, one)
            if one.is_guard:
                found.append(_delete(table, old, None))
                found.append(_put(table, sample_item(one, OTHER_NUMBER), None, is_new=True))
            else:
                found.append(_put(table, old, None, is_new=False))
        return found


def _removed(entity: Entity, pattern: AccessPattern, after: Item) -> list[Attribute]:
    """Keys of sparse indexes, where what is changed decides whether an item is in them."""
    names = {Ref.parse(name) for name in pattern.columns}
    return [
        one
        for one in entity.attributes
        if (condition := parse_condition(one.when)) is not None
        and Ref(entity.source, condition.column) in names
        and one.name not in after
    ]


def _verb(access: Access, pattern: AccessPattern) -> str:
    named = {"PutItem": "insert", "UpdateItem": "update", "DeleteItem": "delete"}
    return named.get(access.request, pattern.operation)


def _is_upsert(pattern: AccessPattern) -> bool:
    text = (pattern.statement or "").upper()
    return any(words in text for words in ("ON CONFLICT", "ON DUPLICATE KEY", "REPLACE INTO"))


def _test(condition: Condition, entity: Entity, item: Item, items: list[Item]) -> Test:
    comparison: str = condition.comparison
    return Test(
        attribute=condition.attribute,
        comparison=comparison,
        values=[] if comparison in WITHOUT_VALUE else compared(condition, entity, item, items),
        template=condition.value,
    )


# The API's own members.


def _read(
    operation: str,
    access: Access,
    pattern: AccessPattern,
    table: TableDesign,
    key: list[Test],
    filters: list[Test],
) -> Request:
    content: dict[str, Any] = {"TableName": table.name}
    if access.index:
        content["IndexName"] = access.index
    if operation == "GetItem":
        content["Key"] = {one.attribute: one.values[0] for one in key}
    else:
        expressions = _Expressions()
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
    return Request(
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


class Rest(NamedTuple):
    text: str
    needs_all: bool
    """Whether all rows have to be there before the first can be taken."""


def left_to_the_application(access: Access) -> Rest:
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
    return Rest(said, bool(tests or sorts))


def _rows(access: Access, pattern: AccessPattern) -> int | None:
    members = asdict(access)
    most: int | None = members.get("first") or access.limit or pattern.limit
    return most + int(members.get("skips", 0)) if most else None


class _Expressions:
    """Names and values of an expression: every name by a placeholder, for many are reserved."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, AttributeValue] = {}

    def joined(self, tests: list[Test], prefix: str) -> str:
        return " AND ".join(
            self._one(test, f"{prefix}{number}") for number, test in enumerate(tests)
        )

    def _one(self, test: Test, label: str) -> str:
        name = self.name(test.attribute, label)
        labels = _labels(f":{label}", len(test.values))
        self.values |= dict(zip(labels, test.values, strict=True))
        write = COMPARISONS.get(test.comparison)
        return write(name, labels) if write else f"{name} {test.comparison} {labels[0]}"

    def name(self, attribute: str, label: str) -> str:
        for known, named in self.names.items():
            if named == attribute:
                return known
        self.names[f"#{label}"] = attribute
        return f"#{label}"

    def members(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.names:
            found["ExpressionAttributeNames"] = self.names
        if self.values:
            found["ExpressionAttributeValues"] = self.values
        return found


def _labels(label: str, count: int) -> list[str]:
    if count <= 1:
        return [label][:count]
    return [f"{label}a", f"{label}b"] if count == 2 else [f"{label}_{n}" for n in range(count)]


def _key_tests(table: TableDesign, item: Item, access: Access | None) -> list[Test]:
    templates = {one.attribute: one.value for one in access.key} if access else {}
    return [
        Test(
            attribute=key.name,
            comparison="=",
            values=[item[key.name]],
            template=templates.get(key.name, ""),
        )
        for key in table.keys
    ]


def _put(table: TableDesign, item: Item, access: Access | None, *, is_new: bool) -> Request:
    content: dict[str, Any] = {"TableName": table.name, "Item": item}
    if is_new:
        content["ConditionExpression"] = "attribute_not_exists(#k0)"
        content["ExpressionAttributeNames"] = {"#k0": table.partition_key.name}
    return Request(
        operation="PutItem",
        input=content,
        table=table.name,
        key=_key_tests(table, item, access),
        item=item,
        must="not_exists" if is_new else "",
    )


def _update(
    table: TableDesign, item: Item, changed: Item, access: Access, removed: list[Attribute]
) -> Request:
    keys = {key.name for key in table.keys}
    new = {name: value for name, value in changed.items() if name not in keys}
    expressions = _Expressions()
    sets = []
    for number, (name, value) in enumerate(new.items()):
        expressions.values[f":s{number}"] = value
        sets.append(f"{expressions.name(name, f's{number}')} = :s{number}")
    gone = [expressions.name(one.name, f"r{place}") for place, one in enumerate(removed)]
    clauses = [f"SET {', '.join(sets)}"] if sets else []
    clauses += [f"REMOVE {', '.join(gone)}"] if gone else []
    condition = f"attribute_exists({expressions.name(table.partition_key.name, 'k0')})"
    content = {
        "TableName": table.name,
        "Key": {name: item[name] for name in (key.name for key in table.keys)},
        **({"UpdateExpression": " ".join(clauses)} if clauses else {}),
        "ConditionExpression": condition,
        **expressions.members(),
    }
    return Request(
        operation="UpdateItem",
        input=content,
        table=table.name,
        key=_key_tests(table, item, access),
        item=new,
        removed=[one.name for one in removed],
        must="exists",
        afterwards=" ".join(
            f"{one.name} is there only while {one.when}: set it to {one.constant!r} then, and"
            " remove it otherwise."
            for one in removed
        ),
    )


def _delete(table: TableDesign, item: Item, access: Access | None) -> Request:
    key = {one.name: item[one.name] for one in table.keys}
    return Request(
        operation="DeleteItem",
        input={"TableName": table.name, "Key": key},
        table=table.name,
        key=_key_tests(table, item, access),
    )


def _transaction(parts: list[Request]) -> Request:
    verbs = {"PutItem": "Put", "UpdateItem": "Update", "DeleteItem": "Delete"}
    return Request(
        operation="TransactWriteItems",
        input={"TransactItems": [{verbs[one.operation]: one.input} for one in parts]},
        table=parts[0].table,
        key=parts[0].key,
        parts=parts,
    )
