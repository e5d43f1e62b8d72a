"""The pages of Query and Scan: the source that they read, the selection, and the items returned."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from partita.database.capacity.capacity_units import ConsumedCapacity, read_units
from partita.database.expressions.condition import CompiledCondition
from partita.database.expressions.projection import Projection
from partita.database.item.attribute_values import AttributeValue, Item, normalize_item
from partita.database.item.key_encoding import KeyAttribute, KeyRange
from partita.database.operations import charges
from partita.database.operations.data_plane.expression_parameters import RequestExpressions
from partita.database.operations.operation_context import ReadContext, Request
from partita.database.operations.response_members import answer, encode, member
from partita.database.operations.scan_cost import PartitionMeter
from partita.database.storage.engine import Snapshot
from partita.database.tables import table_layout
from partita.database.tables.definition.key_rules import (
    KEY_MISMATCH,
    check_key_values,
    check_scalar_paths,
)
from partita.database.tables.definition.table_schema import ALL, Index, Table
from partita.database.tables.index_entries import projected_names
from partita.database.tables.read_path import ItemPage, Keep, load, read_page
from partita.database.tables.stored_item import StoredItem, attributes_decoder, decode
from partita.errors import INVALID, MalformedValue, ValidationException

INVALID_START: Final = "The provided starting key is invalid"
START_MISMATCH: Final = f"{INVALID_START}: The provided key element does not match the schema"


class ReadSource:
    """The table or index that is read."""

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
            return table_layout.entries_prefix(self.table.number, self.index.number)
        return table_layout.items_prefix(self.table.number)

    @property
    def has_one_item_per_partition(self) -> bool:
        """True for a table without a sort key; in an index, keys need not be unique."""
        return self.index is None and not self.sort

    @property
    def start_key_attributes(self) -> dict[str, str]:
        """The key attributes of the table and the index, which a LastEvaluatedKey consists of."""
        return dict(self.table.key_attributes + self.partition + self.sort)

    def range(self, keys: KeyRange) -> tuple[bytes, bytes]:
        if self.index:
            return table_layout.index_range(self.table, self.index, keys)
        return table_layout.table_range(self.table, keys)

    def place(self, key: Item) -> bytes:
        """Returns the storage key in this source of an item, which need not exist."""
        item_key = table_layout.item_key(self.table, key)
        if self.index is None:
            return item_key
        entry = table_layout.entry_key(self.table, self.index, key, table_layout.place_of(item_key))
        assert entry is not None
        return entry

    def last_evaluated_key(self, body: bytes) -> Item:
        item = decode(body)
        return {name: item[name] for name in self.start_key_attributes}


def find_source(context: ReadContext, request: Request) -> ReadSource:
    """Returns the table or index of a request; refuses indexes that cannot be read."""
    table = context.service.table(request["TableName"])
    if "IndexName" not in request:
        return ReadSource(table, None)
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
    return ReadSource(table, index)


def check_select(request: Request, envelope: str) -> None:
    """Check that Select fits the requested attributes and the source.

    A Query's error begins with ENVELOPE, a Scan's does not (recorded in us-east-1).
    """
    if problem := _select_problem(request):
        raise ValidationException(envelope + problem)


def _select_problem(request: Request) -> str | None:
    select = request.get("Select")
    parameter = next(
        (name for name in ("ProjectionExpression", "AttributesToGet") if name in request), None
    )
    if select == "SPECIFIC_ATTRIBUTES" and parameter is None:
        return (
            "Must specify the AttributesToGet or ProjectionExpression when choosing to get "
            "SPECIFIC_ATTRIBUTES"
        )
    if select not in (None, "SPECIFIC_ATTRIBUTES") and parameter is not None:
        chosen = "only the Count" if select == "COUNT" else select
        return f"Cannot specify the {parameter} when choosing to get {chosen}"
    if select == "ALL_PROJECTED_ATTRIBUTES" and "IndexName" not in request:
        return "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"
    return None


class PageSelection:
    """The way in which a page returns items: filtered, projected, fetched from the table."""

    __slots__ = (
        "_decode",
        "expressions",
        "fetched_bytes",
        "fetches",
        "filters_fetched",
        "snapshot",
        "source",
    )

    def __init__(
        self,
        snapshot: Snapshot,
        source: ReadSource,
        expressions: RequestExpressions,
        fetches: bool = False,
        filters_fetched: bool = False,
    ) -> None:
        self.snapshot = snapshot
        self.source = source
        self.expressions = expressions
        self.fetches = fetches
        """True to return items of the table instead of the entries of a local index."""
        self.filters_fetched = filters_fetched
        """True when the filter uses attributes that the local index does not project."""
        self.fetched_bytes = 0
        self._decode: Callable[[bytes], Item] = decode
        if not fetches and not filters_fetched:
            self._decode = part_decoder(expressions.filter, expressions.projection)

    @property
    def keep(self) -> Keep | None:
        if self.fetches or self.expressions.filter or self.expressions.projection:
            return self._keep
        return None

    def _keep(self, body: bytes) -> bytes | None:
        condition, projection = self.expressions.filter, self.expressions.projection
        item = self._decode(body)
        stored = self._fetch(item) if self.filters_fetched else None
        filtered = stored.item if stored else item
        if condition and not condition.holds(filtered, self.expressions.values):
            return None
        if self.fetches:
            stored = stored or self._fetch(item)
            body, item = stored.body, stored.item
        return encode(projection.project(item)) if projection else body

    def _fetch(self, entry: Item) -> StoredItem:
        stored = load(self.snapshot, table_layout.item_key(self.source.table, entry))
        assert stored is not None, "an index entry without its item"
        self.fetched_bytes += stored.size
        return stored


def part_decoder(
    condition: CompiledCondition | None, projection: Projection | None
) -> Callable[[bytes], Item]:
    """Returns a decoder of the attributes that a filter and a projection use."""
    names = condition.attributes if condition else frozenset[str]()
    if projection:
        names = names | {str(path[0]) for path in projection.paths}
    return attributes_decoder(names)


def select(
    context: ReadContext, request: Request, source: ReadSource, expressions: RequestExpressions
) -> PageSelection:
    """Returns how items are read, after checking that the source projects what is needed."""
    table, index = source.table, source.index
    if expressions.projection:
        check_scalar_paths(table, expressions.projection.paths)
    if expressions.filter:
        check_scalar_paths(table, expressions.filter.paths)
    if index is None or index.projection_type == ALL:
        return PageSelection(context.snapshot, source, expressions)
    projected = projected_names(table, index)
    missing = sorted({str(path[0]) for path in _projection_paths(expressions)} - projected)
    if not index.is_local:
        # A filter on a global index sees attributes that are not projected as missing.
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
        return PageSelection(context.snapshot, source, expressions)
    fetches = bool(missing) or request.get("Select") == "ALL_ATTRIBUTES"
    filtered = expressions.filter.attributes if expressions.filter else frozenset()
    filters_fetched = not filtered <= projected
    return PageSelection(context.snapshot, source, expressions, fetches, filters_fetched)


def check_projected(source: ReadSource, attributes: Iterable[str]) -> None:
    """Check that the filter of a Query only uses attributes that the index projects."""
    if source.index and source.index.projection_type != ALL:
        missing = sorted(set(attributes) - projected_names(source.table, source.index))
        if missing:
            raise ValidationException(
                f"{INVALID}Secondary index {source.index.name} does not project one or more filter "
                f"attributes: [{', '.join(missing)}]"
            )


def _projection_paths(expressions: RequestExpressions) -> Iterable[tuple[str | int, ...]]:
    return expressions.projection.paths if expressions.projection else ()


def check_start_key(source: ReadSource, key: Item) -> None:
    """Check that an ExclusiveStartKey could be a LastEvaluatedKey of this source."""
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
    """Returns the normalized ExclusiveStartKey, or None without one."""
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
    selection: PageSelection,
    start: bytes,
    stop: bytes,
    partition: tuple[AttributeValue, ...] = (),
) -> bytes:
    """Returns the response with one page between two storage keys.

    A Query passes its partition key; a Scan has none.
    """
    page = read_charged(context, request, selection, start, stop, partition)
    if partition and selection.source.has_one_item_per_partition:
        page.last_evaluated = None
    return _answer(request, selection, page)


def read_charged(
    context: ReadContext,
    request: Request,
    selection: PageSelection,
    start: bytes,
    stop: bytes,
    partition: tuple[AttributeValue, ...] = (),
) -> ItemPage:
    """Read one page between two storage keys, and charge for it."""
    source, service = selection.source, context.service
    page = read_metered(
        context, request, source, selection.keep, start, stop, is_scan=not partition
    )
    if service.ledger.is_on:
        page_charges = charges.page_charges(
            service,
            source.table,
            source.index,
            [
                (table_layout.hash_part(source.prefix, place), _units(request, size))
                for place, size in page.visits
            ],
            _fetched_units(request, selection),
            partition,
        )
        charges.charge(service, page_charges)
    return page


def read_metered(
    context: ReadContext,
    request: Request,
    source: ReadSource,
    keep: Keep | None,
    start: bytes,
    stop: bytes,
    *,
    is_scan: bool,
) -> ItemPage:
    """Read one page between two storage keys, and count what was read of each partition."""
    service, snapshot = context.service, context.snapshot
    forward = request.get("ScanIndexForward", True)
    pairs: Iterable[tuple[bytes, bytes]] = snapshot.range(start, stop, reverse=not forward)
    meter = None
    if is_scan and (service.ledger.is_on or "ReturnConsumedCapacity" in request):
        starts = charges.partition_starts(service, snapshot, source.table, source.index)
        meter = PartitionMeter(source.prefix, starts, start, stop)
        pairs = meter.watch(pairs)
    page = read_page(pairs, request.get("Limit"), keep, service.stopwatch)
    if meter is None:
        page.visits = [(start, page.scanned_bytes)]
    else:
        page.visits = list(zip(meter.visited_keys(), meter.visited_bytes, strict=True))
    return page


def _answer(request: Request, selection: PageSelection, page: ItemPage) -> bytes:
    source = selection.source
    members = [b'"Count":%d,"ScannedCount":%d' % (len(page.items), page.scanned_count)]
    if page.last_evaluated is not None:
        key = source.last_evaluated_key(page.last_evaluated)
        members.append(member("LastEvaluatedKey", key))
    if mode := request.get("ReturnConsumedCapacity"):
        report = consumed_by_page(request, selection, page).report(source.table.name, mode)
        if report:
            members.append(member("ConsumedCapacity", report))
    if request.get("Select") == "COUNT":
        return answer(members)
    # The items can be a megabyte together: copy them only once.
    rest = b",".join(members)
    return b"".join((b'{"Items":[', b",".join(page.items), b"],", rest, b"}"))


def consumed_by_page(
    request: Request, selection: PageSelection, page: ItemPage
) -> ConsumedCapacity:
    """Returns the units of a page: the index pays for its entries, the table for fetched items."""
    units = sum(_units(request, size) for _, size in page.visits)
    index = selection.source.index
    if index is None:
        return ConsumedCapacity(units)
    consumed = ConsumedCapacity(_fetched_units(request, selection))
    consumed.add_index(index.name, units, is_local=index.is_local)
    return consumed


def _fetched_units(request: Request, selection: PageSelection) -> float:
    return _units(request, selection.fetched_bytes) if selection.fetched_bytes else 0.0


def _units(request: Request, size_bytes: int) -> float:
    return read_units(size_bytes, consistent=bool(request.get("ConsistentRead")))
