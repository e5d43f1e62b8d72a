"""What Query and Scan share: the source they read, what they select of it, the page they answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from partita.database.capacity.units import Consumed, read_units
from partita.database.expressions.key_condition import KeyRange
from partita.database.item.keys import KeyAttribute
from partita.database.item.values import AttributeValue, Item, normalize_item
from partita.database.operations import charges
from partita.database.operations.answers import answer, encode, member, raw_list, raw_member
from partita.database.operations.context import ReadContext, Request
from partita.database.operations.data_plane.expression_parameters import ENVELOPE, Expressions
from partita.database.storage.engine import Snapshot
from partita.database.tables import layout
from partita.database.tables.indexes import projected_names
from partita.database.tables.keys import KEY_MISMATCH, check_key_values, check_scalar_paths
from partita.database.tables.read import Keep, Page, load, read_page
from partita.database.tables.schema import ALL, Index, Table
from partita.database.tables.stored import Stored, decode
from partita.errors import INVALID, MalformedValue, ValidationException

INVALID_START: Final = "The provided starting key is invalid"
START_MISMATCH: Final = f"{INVALID_START}: The provided key element does not match the schema"


class Source:
    """A table, or one of its indexes."""

    __slots__ = ("index", "partition", "sort", "table")

    def __init__(self, table: Table, index: Index | None) -> None:
        self.table = table
        self.index = index
        self.partition: tuple[KeyAttribute, ...]
        self.sort: tuple[KeyAttribute, ...]
        if index is None:
            self.partition, self.sort = (table.partition,), table.sort_attributes
        else:
            self.partition, self.sort = index.partition, index.sort

    @property
    def prefix(self) -> bytes:
        if self.index:
            return layout.entries_prefix(self.table.number, self.index.number)
        return layout.items_prefix(self.table.number)

    @property
    def start_key_attributes(self) -> dict[str, str]:
        """What a LastEvaluatedKey consists of: the table's key and the index's."""
        return dict(self.table.key_attributes + self.partition + self.sort)

    def range(self, keys: KeyRange) -> tuple[bytes, bytes]:
        if self.index:
            return layout.index_range(self.table, self.index, keys)
        return layout.table_range(self.table, keys)

    def place(self, key: Item) -> bytes:
        """Where an item with these key attributes stands, or would stand, in this source."""
        item_key = layout.item_key(self.table, key)
        if self.index is None:
            return item_key
        entry = layout.entry_key(self.table, self.index, key, layout.place_of(item_key))
        assert entry is not None
        return entry

    def last_evaluated_key(self, body: bytes) -> Item:
        item = decode(body)
        return {name: item[name] for name in self.start_key_attributes}


def find_source(context: ReadContext, request: Request) -> Source:
    table = context.service.table(request["TableName"])
    if "IndexName" not in request:
        return Source(table, None)
    index = table.index(request["IndexName"])
    if index is None:
        raise ValidationException(
            f"The table does not have the specified index: {request['IndexName']}"
        )
    if not index.is_readable:
        raise ValidationException(
            f"Cannot read from backfilling global secondary index: {index.name}"
        )
    if request.get("ConsistentRead") and not index.is_local:
        raise ValidationException("Consistent reads are not supported on global secondary indexes")
    return Source(table, index)


def check_select(request: Request) -> None:
    """Select must agree with the attributes that are asked for, and with the source."""
    select = request.get("Select")
    asked = next(
        (name for name in ("ProjectionExpression", "AttributesToGet") if name in request), None
    )
    if select == "SPECIFIC_ATTRIBUTES" and asked is None:
        # Of the texts for Select only this one has the envelope (recorded).
        raise ValidationException(
            f"{ENVELOPE}Must specify the AttributesToGet or ProjectionExpression when choosing to "
            "get SPECIFIC_ATTRIBUTES"
        )
    if select not in (None, "SPECIFIC_ATTRIBUTES") and asked is not None:
        chosen = "only the Count" if select == "COUNT" else select
        raise ValidationException(f"Cannot specify the {asked} when choosing to get {chosen}")
    if select == "ALL_PROJECTED_ATTRIBUTES" and "IndexName" not in request:
        raise ValidationException(
            "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"
        )


class Selection:
    """Which items of a page are shown, and how: filtered, projected, fetched from the table."""

    __slots__ = ("expressions", "fetched_bytes", "fetches", "snapshot", "source")

    def __init__(
        self, snapshot: Snapshot, source: Source, expressions: Expressions, fetches: bool
    ) -> None:
        self.snapshot = snapshot
        self.source = source
        self.expressions = expressions
        self.fetches = fetches
        self.fetched_bytes = 0

    @property
    def keep(self) -> Keep | None:
        if self.fetches or self.expressions.filter or self.expressions.projection:
            return self._keep
        return None

    def _keep(self, body: bytes) -> bytes | None:
        condition, projection = self.expressions.filter, self.expressions.projection
        item = decode(body)
        if condition and not condition.holds(item, self.expressions.values):
            return None
        if self.fetches:
            stored = self._fetch(item)
            body, item = stored.body, stored.item
        return encode(projection.project(item)) if projection else body

    def _fetch(self, entry: Item) -> Stored:
        stored = load(self.snapshot, layout.item_key(self.source.table, entry))
        assert stored is not None, "an index entry without its item"
        self.fetched_bytes += stored.size
        return stored


def select(
    context: ReadContext, request: Request, source: Source, expressions: Expressions
) -> Selection:
    """Check what is selected against what the source projects."""
    table, index = source.table, source.index
    if expressions.projection:
        check_scalar_paths(table, expressions.projection.paths)
    if expressions.filter:
        check_scalar_paths(table, expressions.filter.paths)
    if index is None or index.projection_type == ALL:
        return Selection(context.snapshot, source, expressions, fetches=False)
    projected = projected_names(table, index)
    missing = sorted({str(path[0]) for path in _projection_paths(expressions)} - projected)
    if not index.is_local:
        if request.get("Select") == "ALL_ATTRIBUTES":
            raise ValidationException(
                f"{INVALID}Select type ALL_ATTRIBUTES is not supported for global secondary index "
                f"{index.name} because its projection type is not ALL"
            )
        if missing:
            raise ValidationException(
                f"{INVALID}Global secondary index {index.name} does not project "
                f"[{', '.join(missing)}]"
            )
    fetches = bool(missing) or request.get("Select") == "ALL_ATTRIBUTES"
    return Selection(context.snapshot, source, expressions, fetches)


def check_projected(source: Source, attributes: Iterable[str]) -> None:
    """Within one partition of an index, a filter sees only what the index has."""
    if source.index and source.index.projection_type != ALL:
        missing = sorted(set(attributes) - projected_names(source.table, source.index))
        if missing:
            raise ValidationException(
                f"{INVALID}Secondary index {source.index.name} does not project one or more filter "
                f"attributes: [{', '.join(missing)}]"
            )


def _projection_paths(expressions: Expressions) -> Iterable[tuple[str | int, ...]]:
    return expressions.projection.paths if expressions.projection else ()


def check_start_key(source: Source, key: Item) -> None:
    """An ExclusiveStartKey must be what a LastEvaluatedKey of this source could be."""
    attributes = source.start_key_attributes
    if key.keys() != attributes.keys():
        raise ValidationException(INVALID_START)
    own = {name for name, _ in source.partition + source.sort}
    for name, kind in attributes.items():
        if kind not in key[name]:
            raise ValidationException(KEY_MISMATCH if name in own else START_MISMATCH)
    table = source.table
    try:
        check_key_values((table.partition,), table.sort_attributes, key)
        check_key_values(source.partition, source.sort, key)
    except ValidationException as error:
        raise ValidationException(f"{INVALID_START}: {error.message}") from None


def start_values(request: Request) -> Item | None:
    """The ExclusiveStartKey with its values checked."""
    key = request.get("ExclusiveStartKey")
    if key is None:
        return None
    try:
        return normalize_item(key)
    except MalformedValue as error:
        raise ValidationException(f"{INVALID_START}: {error.message}") from None


def read(
    context: ReadContext,
    request: Request,
    selection: Selection,
    start: bytes,
    stop: bytes,
    partition: tuple[AttributeValue, ...] = (),
) -> bytes:
    """Read one page between two keys, and answer it; a Query's is of one partition."""
    page = read_charged(context, request, selection, start, stop, partition)
    return _answer(request, selection, page)


def read_charged(
    context: ReadContext,
    request: Request,
    selection: Selection,
    start: bytes,
    stop: bytes,
    partition: tuple[AttributeValue, ...] = (),
) -> Page:
    """One page between two keys, paid for."""
    forward = request.get("ScanIndexForward", True)
    pairs = context.snapshot.range(start, stop, reverse=not forward)
    page = read_page(pairs, request.get("Limit"), selection.keep)
    if context.service.ledger.is_on:
        source = selection.source
        consumed = consumed_by_page(request, selection, page)
        place = layout.hash_part(source.prefix, start)
        asked = charges.page_charges(context.service, source.table, consumed, place, partition)
        charges.charge(context.service, asked)
    return page


def _answer(request: Request, selection: Selection, page: Page) -> bytes:
    source = selection.source
    members = []
    if request.get("Select") != "COUNT":
        members.append(raw_member("Items", raw_list(page.items)))
    members.append(b'"Count":%d,"ScannedCount":%d' % (len(page.items), page.scanned_count))
    if page.last_evaluated is not None:
        key = source.last_evaluated_key(page.last_evaluated)
        members.append(member("LastEvaluatedKey", key))
    if mode := request.get("ReturnConsumedCapacity"):
        report = consumed_by_page(request, selection, page).report(source.table.name, mode)
        if report:
            members.append(member("ConsumedCapacity", report))
    return answer(members)


def consumed_by_page(request: Request, selection: Selection, page: Page) -> Consumed:
    """An index read is charged to the index; what it fetches besides, to the table."""
    consistent = bool(request.get("ConsistentRead"))
    units = read_units(page.scanned_bytes, consistent=consistent)
    index = selection.source.index
    if index is None:
        return Consumed(units)
    consumed = Consumed()
    if selection.fetched_bytes:
        consumed.table = read_units(selection.fetched_bytes, consistent=consistent)
    consumed.add_index(index.name, units, is_local=index.is_local)
    return consumed
