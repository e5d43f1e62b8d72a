"""The request that answers a question: a key that leads to its rows, and what is left to test.

Every table and index of the design is tried with every type of item that has the rows. A way is
taken only if nothing is missing from its answer and nothing is too much in it: tests that no key
makes are filters, where the index has the attribute, else the application's; a limit is the
request's own only when nothing is filtered and the order is the key's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from partita.database.item.values import AttributeValue
from partita.migrate.designing.requests.segments import (
    Field,
    Segments,
    is_sharded,
    may_be_equal,
    may_begin_with,
    segments,
)
from partita.migrate.model.buckets import BUCKET, BUCKETS, bucket_count
from partita.migrate.model.design import (
    Access,
    Attribute,
    Comparison,
    Condition,
    Design,
    Entity,
    SecondaryIndex,
    TableDesign,
    columns_of,
    type_attribute,
)
from partita.migrate.model.key_texts import (
    HIGHEST,
    NotEncodable,
    field_text,
    is_order_preserving,
    plain_text,
)
from partita.migrate.model.row_conditions import RowCondition, parse_condition
from partita.migrate.model.templates import PATH, ROOT, SEPARATOR, SHARD
from partita.migrate.statements.question import (
    Constant,
    JoinedTable,
    Parameter,
    Question,
    Sorting,
    Test,
    Value,
    equalities,
)
from partita.migrate.statements.values import fold_of, literal_value
from partita.migrate.understanding.schema.column_refs import Ref, parse_join
from partita.migrate.understanding.schema.inventory import Column, Inventory, Table

AFTER_SEPARATOR = chr(ord(SEPARATOR) + 1)
"""Ends a range: keys go on behind a value with a separator, and belong to it."""
SCALARS = ("S", "N", "B", "BOOL")
_UNSORTED = ("enum", "set", "json", "array", "boolean", "time")
"""Kinds whose texts do not sort as their values do."""
_FILTERS: dict[str, Comparison] = {"is null": "not_exists", "is not null": "exists"}


class NotServed(Exception):
    """No request of a design answers; the text says why."""


@dataclass(frozen=True)
class Home:
    """Where the items of an entity are read: a table, or one of its indexes."""

    table: TableDesign
    index: SecondaryIndex | None
    entity: Entity

    @property
    def keys(self) -> list[str]:
        return [key.name for key in (self.index or self.table).keys]

    @property
    def name(self) -> str:
        return self.index.name if self.index else self.table.name

    def has(self, attribute: Attribute) -> bool:
        """Whether an attribute comes along."""
        if self.index is None or self.index.projection == "ALL":
            return True
        always = {key.name for key in [*self.table.keys, *self.index.keys]}
        return attribute.name in always | set(self.index.include)


@dataclass(frozen=True)
class Planned:
    requests: list[Access]
    rank: tuple[float, ...]


@dataclass(frozen=True)
class Brought:
    """How the columns of a question come with the requests of a pattern."""

    asked: Question
    """The question as it is asked of the items of the first request."""
    attributes: list[dict[Ref, str]]
    """By request: the attributes that bring columns."""
    held: dict[Ref, str]
    """All columns that the items of the first request hold."""


class ReadPlanner:
    def __init__(
        self, design: Design, inventory: Inventory, never_null: Collection[Ref] = ()
    ) -> None:
        """`never_null`: columns that may be NULL by their type, and are not in any sampled row."""
        self.design = design
        self.inventory = inventory
        self.never_null = never_null
        self.columns = {
            Ref(table.name, column.name): column
            for table in inventory.tables
            for column in table.columns
        }

    def plan(
        self, question: Question, pattern: str, *, is_consistent: bool = False
    ) -> list[Access]:
        """NotServed with the reason when nothing answers."""
        reasons: list[str] = []
        found: list[Planned] = []
        for home, asked in self._homes(question):
            if is_consistent and home.index is not None and home.index.kind == "global":
                reasons.append(f"{home.name} has no consistent reads")
                continue
            try:
                found.append(_Way(self, asked, home).planned(pattern))
            except NotServed as reason:
                reasons.append(str(reason))
            if home.index is None and home.table.is_scanned:
                try:
                    found.append(_Way(self, asked, home).scanned(pattern))
                except NotServed as reason:
                    reasons.append(str(reason))
        if found:
            return min(found, key=lambda one: one.rank).requests
        raise NotServed(_most_telling(reasons, question))

    def brought(self, question: Question, accesses: Sequence[Access]) -> Brought:
        first, *others = accesses
        for home, asked in self._homes(question):
            is_home = (home.table.name, home.entity.name) == (first.table, first.entity)
            if not is_home or first.index != (home.index.name if home.index else None):
                continue
            way = _Way(self, asked, home)
            known = {ref: way.brought(ref) for ref in self.columns}
            held = {ref: one.name for ref, one in known.items() if one is not None}
            attributes = [{ref: held[ref] for ref in question.columns if ref in held}]
            for access in others:
                table = self.design.table(access.table)
                entity = table.entity(access.entity) if table is not None else None
                attributes.append(_own_attributes(entity) if entity is not None else {})
            return Brought(asked, attributes, held)
        return Brought(question, [{} for _ in accesses], {})

    def types_met(self, access: Access) -> list[str]:
        """Other types of items that lie in the range a request reads, and are not filtered out."""
        table = self.design.table(access.table)
        entity = table.entity(access.entity) if table is not None else None
        if table is None or entity is None or access.request != "Query":
            return []
        index = table.index(access.index) if access.index else None
        way = _Way(self, Question(table=entity.source), Home(table, index, entity))
        name = type_attribute(table)
        if any(one.attribute == name and one.value == entity.name for one in access.filter):
            return []
        return way.types_met(access.key)

    def _homes(self, question: Question) -> Iterator[tuple[Home, Question]]:
        finest = self.finest(question)
        for table, entity in self.design.entities():
            if entity.is_guard:
                continue
            for asked in self._asked_of(entity, question, finest):
                for index in (None, *table.indexes):
                    yield Home(table, index, entity), asked

    def _asked_of(self, entity: Entity, question: Question, finest: str) -> Iterator[Question]:
        if entity.source == finest and entity.rows == "each":
            yield rebased(question, finest)
        if entity.rows == "latest" and entity.source == finest:
            latest = self._latest(entity, question)
            if latest is not None:
                yield latest
        if question.joins or finest == entity.source:
            return
        if entity.rows == "latest" and self._is_per(entity, question.table):
            pairs = _path_pairs(entity, question.table)
            joins = tuple(JoinedTable(table, own) for table, own in pairs.items())
            yield replace(question, table=entity.source, joins=joins)
            return
        # One of the items that hold a row's columns is enough, where one row is asked for.
        pairs = _path_pairs(entity, question.table)
        if pairs and self._names_one_row(question):
            joins = tuple(JoinedTable(table, own) for table, own in pairs.items())
            yield replace(question, table=entity.source, joins=joins, order=(), limit=1)

    def _is_per(self, entity: Entity, table: str) -> bool:
        """Whether an entity has one item for each row of a table."""
        pairs = _path_pairs(entity, table).get(table, ())
        per = {Ref.parse(name) for name in entity.per}
        return bool(pairs) and {left for left, _ in pairs} == per

    def _latest(self, entity: Entity, question: Question) -> Question | None:
        """The newest row of one parent, as its item answers for it."""
        by = Ref.parse(entity.latest_by or "")
        newest = [Sorting(by, is_descending=True)]
        per = {Ref.parse(name) for name in entity.per}
        given = {ref for test in question.tests if test.operator == "=" for ref in
                 question.same(test.ref)}  # fmt: skip
        tested = {test.ref for test in question.tests if test.operator != "="}
        if list(question.order[:1]) != newest or question.limit != 1 or tested:
            return None
        others = {test.ref for test in question.tests} - {
            ref for one in per for ref in question.same(one)
        }
        return replace(question, order=()) if per <= given and not others else None

    def finest(self, question: Question) -> str:
        """The table of which each row of the answer has one; the others are reached upwards."""
        tables = question.tables
        for table in tables:
            if all(self._leads_up(question, table, other) for other in tables if other != table):
                return table
        raise NotServed(
            f"the rows of {' and '.join(tables)} are combined, and no item holds such a pair"
        )

    def _leads_up(self, question: Question, table: str, other: str) -> bool:
        """Whether a row of one table is joined to at most one of another."""
        reached = {table}
        steps = [pairs for join in question.joins for pairs in [join.pairs]]
        changed = True
        while changed:
            changed = False
            for pairs in steps:
                for turned in (pairs, tuple((right, left) for left, right in pairs)):
                    before = {left.table for left, _ in turned}
                    after = {right.table for _, right in turned}
                    if not before <= reached or len(after) != 1 or after <= reached:
                        continue
                    (target,) = after
                    if self.is_unique(target, {right.column for _, right in turned}):
                        reached.add(target)
                        changed = True
        return other in reached

    def is_unique(self, name: str, columns: set[str]) -> bool:
        table = self.inventory.table(name)
        if table is None:
            return False
        keys = [set(table.primary_key)] if table.primary_key else []
        keys += [
            set(index.columns)
            for index in table.indexes
            if index.is_unique and not index.where and not index.expressions and index.columns
        ]
        return any(key <= columns for key in keys)

    def _names_one_row(self, question: Question) -> bool:
        given = {test.ref.column for test in question.tests if test.operator == "="}
        return self.is_unique(question.table, given)

    def table(self, name: str) -> Table | None:
        return self.inventory.table(name)

    def column(self, ref: Ref) -> Column | None:
        return self.columns.get(ref)

    def columns_of(self, name: str) -> list[Column]:
        table = self.inventory.table(name)
        return table.columns if table is not None else []

    def fold(self, ref: Ref) -> str:
        column = self.column(ref)
        return fold_of(column, self.inventory.dialect) if column is not None else ""


def rebased(question: Question, finest: str) -> Question:
    """The same question, asked of the table whose rows the answer has; joins lead up from it."""
    if question.table == finest:
        return question
    outer = [join.table for join in question.joins if join.is_outer]
    if outer:
        raise NotServed(
            f"rows of {question.table} without a row of {outer[0]} belong to the answer too,"
            f" and {finest}'s items have none for them"
        )
    pairs: dict[str, list[tuple[Ref, Ref]]] = {}
    for join in question.joins:
        for left, right in join.pairs:
            target = right.table if right.table != finest else left.table
            pairs.setdefault(target, []).append((left, right))
    tables = [table for table in question.tables if table != finest]
    joins = tuple(JoinedTable(table, tuple(pairs.get(table, ()))) for table in tables)
    return replace(question, table=finest, joins=joins)


def _path_pairs(entity: Entity, table: str) -> dict[str, tuple[tuple[Ref, Ref], ...]]:
    """The joins by which an entity's items hold a table's columns, by the table they lead to."""
    for attribute in entity.attributes:
        if attribute.column and Ref.parse(attribute.column).table == table and attribute.through:
            joins = [parse_join(text) for text in attribute.through]
            return {
                join.after[0].table: tuple(zip(join.before, join.after, strict=True))
                for join in joins
                if join is not None
            }
    return {}


def _own_attributes(entity: Entity) -> dict[Ref, str]:
    """By column of an entity's own rows, the attribute that holds it."""
    found: dict[Ref, str] = {}
    for attribute in entity.attributes:
        ref = Ref.parse(attribute.column or "")
        if ref.table == entity.source and not attribute.through:
            found[ref] = attribute.name
    return found


def _whole(attribute: Attribute, parts: Segments) -> Condition:
    """A key of a row that is known: each field under the name of its own column."""
    text = parts.texts[0]
    for field, after in zip(parts.fields, parts.texts[1:], strict=True):
        shape = f":{field.format}" if field.format else ""
        text += f"{{{field.ref}{shape}}}" + after
    return Condition(attribute=attribute.name, value=text)


def _most_telling(reasons: Sequence[str], question: Question) -> str:
    """The reason of the way that came nearest."""
    if not question.tests:
        return "it asks for no value of any column: it is a scan"
    first = [one for one in reasons if "no key leads" not in one]
    return (first or list(reasons) or [f"{question.table} has no items of its own"])[0]


class _Way:
    """One home, tried for one question."""

    def __init__(self, planner: ReadPlanner, question: Question, home: Home) -> None:
        self.planner = planner
        self.question = question
        self.home = home
        self.entity = home.entity
        self.left = list(question.tests)
        self.requests = 1
        self.buckets = 1
        self.filters: list[Condition] = []
        self.tested: list[Condition] = []
        keys = [self.entity.attribute(name) for name in home.keys]
        if any(key is None for key in keys):
            raise NotServed(f"no key leads to {self.entity.name} in {home.name}")
        self.keys = [key for key in keys if key is not None]

    def planned(self, pattern: str) -> Planned:
        conditions = [self._partition()]
        sort, following = self._sort()
        conditions += sort
        self._keep_types_apart(conditions)
        if self.home.index is not None:
            self._refuse_absent_rows()
        self._add_joined_rows()
        for test in self.left:
            self._filter(test)
        lookups = self._lookups(pattern)
        return self._request(pattern, conditions, following, lookups)

    def scanned(self, pattern: str) -> Planned:
        """The whole of a small table."""
        if len(self.home.table.entities) > 1:
            self._keep_types_apart([])
        self._add_joined_rows()
        for test in self.left:
            self._filter(test)
        return self._request(pattern, [], [], self._lookups(pattern))

    # Which attribute holds a column.

    def holder(self, ref: Ref) -> Attribute | None:
        """Of a column of the question, by the joins of the question."""
        same = self.question.same(ref)
        found: Attribute | None = None
        for attribute in self.entity.attributes:
            if not attribute.column or Ref.parse(attribute.column) not in same:
                continue
            if not attribute.through:
                # An outer join's column is NULL where the row that it repeats is not there.
                own = Ref.parse(attribute.column)
                if own == ref or not self._is_outer(ref.table) or self._is_enforced(own, ref):
                    return attribute
                continue
            if self._is_followed(attribute) and (
                Ref.parse(attribute.column) == ref or found is None
            ):
                found = attribute
        return found

    def _is_outer(self, table: str) -> bool:
        return any(join.is_outer and join.table == table for join in self.question.joins)

    def brought(self, ref: Ref) -> Attribute | None:
        """The attribute of an item that brings a column along."""
        attribute = self.holder(ref)
        return attribute if attribute is not None and self.home.has(attribute) else None

    def _lookups(self, pattern: str) -> list[Access]:
        """A request for each item that brings what it does not hold itself."""
        missing: dict[str, list[Ref]] = {}
        for ref in self.question.columns:
            if self.brought(ref) is None:
                missing.setdefault(ref.table, []).append(ref)
        found: list[Access] = []
        known: set[Ref] = set()
        waiting = dict(missing)
        others = [table for table in self.question.tables if table not in missing]
        while waiting:
            # One that lies between is looked up too, where only it leads on.
            for table in [*waiting, *others]:
                access = self._lookup(pattern, table, waiting.get(table, []), known)
                if access is not None:
                    break
            else:
                (first, *_) = next(iter(waiting.values()))
                raise NotServed(
                    f"the items of {self.entity.name} in {self.home.name} do not hold {first}"
                )
            found.append(access)
            known |= {Ref(table, column.name) for column in self.planner.columns_of(table)}
            waiting.pop(table, None)
            others = [one for one in others if one != table]
        return found

    def _lookup(
        self, pattern: str, table: str, missing: list[Ref], known: set[Ref]
    ) -> Access | None:
        """By the key of a table's items, if what is known by then tells it."""
        if table == self.entity.source and not missing:
            return None
        for home, entity in self.planner.design.entities():
            if entity.source != table or entity.is_guard or entity.rows != "each":
                continue
            if not set(missing) <= _own_attributes(entity).keys():
                continue
            keys = [entity.attribute(key.name) for key in home.keys]
            parts = [segments(entity, key) for key in keys if key is not None]
            fields = [field for one in parts for field in one.fields]
            if not all(self._is_known(field.ref, known) for field in fields):
                continue
            return Access(
                pattern=pattern,
                request="GetItem",
                table=home.name,
                entity=entity.name,
                key=[_whole(key, one) for key, one in zip(keys, parts, strict=True) if key],
                for_each=True,
                why=f"For each item, what {self.home.name} does not hold of {table}.",
            )
        return None

    def _is_known(self, ref: Ref, known: set[Ref]) -> bool:
        same = self.question.same(ref)
        return bool(same & known) or any(self.brought(one) is not None for one in same)

    def _held(self, ref: Ref) -> Attribute:
        attribute = self.holder(ref)
        if attribute is None:
            raise NotServed(f"the items of {self.entity.name} do not hold {ref}")
        if not self.home.has(attribute):
            raise NotServed(f"{self.home.name} does not project {attribute.name}")
        return attribute

    # Keys.

    def _is_followed(self, attribute: Attribute) -> bool:
        """Whether the question goes the way by which an attribute reaches another table."""
        pairs = {frozenset(pair) for join in self.question.joins for pair in join.pairs}
        return all(
            frozenset(pair) in pairs
            for text in attribute.through
            if (join := parse_join(text)) is not None
            for pair in zip(join.before, join.after, strict=True)
        )

    def _test_of(self, attribute: Attribute, field: Field) -> Test | None:
        """The test of a value that a field must be equal to, if its text tells such values."""
        if field.format in (PATH, ROOT):
            return None
        if field.ref.table != self.entity.source and not self._is_followed(attribute):
            return None
        same = self.question.same(field.ref)
        test = next((one for ref, one in equalities(self.left).items() if ref in same), None)
        if test is None or field.format == (fold := self.planner.fold(field.ref)):
            return test
        is_text = fold or self.planner.fold(test.ref)
        return None if is_text else test

    def _partition(self) -> Condition:
        attribute = self.keys[0]
        self._meet_condition(attribute)
        parts = segments(self.entity, attribute)
        text = parts.texts[0]
        for field, after in zip(parts.fields, parts.texts[1:], strict=True):
            if field.name == SHARD:
                text += field.written() + after
                self.requests *= attribute.shards
                continue
            test = self._test_of(attribute, field)
            if test is None and field.format in BUCKETS and attribute.first:
                text += field.written(BUCKET) + after
                self.buckets = bucket_count(field.format, attribute.first, attribute.last)
                continue
            if test is None:
                raise NotServed(f"no key leads from what it gives to the items of"
                                f" {self.entity.name} in {self.home.name}")  # fmt: skip
            text += self._given(field, test, parts) + after
            self._consume(test)
        return Condition(attribute=attribute.name, value=text)

    def _meet_condition(self, attribute: Attribute) -> None:
        """An index of some rows answers only what asks for these; the index has tested it then."""
        condition = parse_condition(attribute.when)
        if condition is None:
            return
        ref = Ref(self.entity.source, condition.column)
        for test in self.left:
            if test.ref == ref and self._says(test, condition):
                self.left.remove(test)
                return
        raise NotServed(f"{self.home.name} has only rows with {attribute.when}")

    def _says(self, test: Test, condition: RowCondition) -> bool:
        if condition.test != "=":
            return test.operator == condition.test
        if test.operator != "=" or not isinstance(test.values[0], Constant):
            return False
        return plain_text(self._converted(test.ref, test.values[0])) == condition.value

    def _consume(self, test: Test) -> None:
        self.left.remove(test)
        self.requests *= len(test.values)

    def _given(self, field: Field, test: Test, parts: Segments) -> str:
        """A test's value inside a key; several values take a request each."""
        (value, *others) = test.values
        if others or isinstance(value, Parameter):
            return field.written()
        return self._literal(test.ref, value, field.format, is_plain=parts.is_plain)

    def _literal(self, ref: Ref, value: Value, shape: str, *, is_plain: bool) -> str:
        assert isinstance(value, Constant)
        converted = self._converted(ref, value)
        if is_plain:
            return str(next(iter(converted.values())))
        try:
            return field_text(shape, converted)
        except NotEncodable as error:
            raise NotServed(str(error).rstrip(".")) from error

    def _converted(self, ref: Ref, value: Constant) -> AttributeValue:
        column = self.planner.column(ref)
        dialect = self.planner.inventory.dialect
        converted = literal_value(column, value.value, dialect) if column is not None else None
        if converted is None:
            raise NotServed(f"{ref} is compared with NULL, which finds nothing")
        text = str(next(iter(converted.values())))
        if any(mark in text for mark in ("{", "}", " and ", " or ")):
            raise NotServed(f"{ref} is compared with a text that a model file cannot hold")
        return converted

    def _sort(self) -> tuple[list[Condition], list[Field]]:
        """The condition on the sort key, and the fields in whose order items come."""
        if len(self.keys) < 2:
            return [], []
        attribute = self.keys[1]
        parts = segments(self.entity, attribute)
        text = parts.texts[0]
        for position, field in enumerate(parts.fields):
            test = self._test_of(attribute, field)
            if test is None:
                following = list(parts.fields[position:])
                is_last = position == len(parts.fields) - 1 and not parts.texts[-1]
                found = self._range(attribute, parts, text, field, is_last)
                if found is None and text:
                    found = Condition(
                        attribute=attribute.name, comparison="begins_with", value=text
                    )
                return ([found] if found is not None else []), following
            text += self._given(field, test, parts) + parts.texts[position + 1]
            self._consume(test)
        return [Condition(attribute=attribute.name, value=text)], []

    def _range(
        self, attribute: Attribute, parts: Segments, lead: str, field: Field, is_last: bool
    ) -> Condition | None:
        """The tests of a range, as far as the order of the key's texts makes them."""
        if not self._keeps_order(attribute, parts, field):
            return None
        if field.ref.table != self.entity.source and not self._is_followed(attribute):
            return None
        same = self.question.same(field.ref)
        tests = [test for test in self.left if test.ref in same]
        for test in tests:
            if test.operator == "begins_with":
                return self._beginning(attribute, parts, lead, field, test)
        low = next((test for test in tests if test.operator in (">", ">=", "between")), None)
        high = next((test for test in tests if test.operator in ("<", "<=", "between")), None)
        if low is None and high is None:
            return None
        if parts.is_plain:
            return self._plain_range(attribute, field, low, high)
        first = f"{lead}{self._bound(field, low, 0)}" if low is not None else lead
        if low is not None and low.operator == ">":
            first += AFTER_SEPARATOR if not is_last else ""
        last = f"{lead}{self._bound(field, high, -1)}" if high is not None else f"{lead}{HIGHEST}"
        if high is not None and high.operator in ("<=", "between") and not is_last:
            last += AFTER_SEPARATOR
        self._drop_ranges(low, high, is_exact=not is_last)
        if low is None:
            self._leave_out_nulls(field.ref)
        comparison: Comparison = "between"
        value = f"{first} and {last}"
        if not first:
            comparison, value = "<=", last
        elif not lead and high is None:
            comparison, value = ">=", first
        return Condition(attribute=attribute.name, comparison=comparison, value=value)

    def _leave_out_nulls(self, ref: Ref) -> None:
        """A NULL in a key stands before all values, and no comparison is true of it."""
        column = self.planner.column(ref)
        if column is not None and column.is_nullable:
            self._add_condition(self._held(ref), "exists", "")

    def _plain_range(
        self, attribute: Attribute, field: Field, low: Test | None, high: Test | None
    ) -> Condition:
        """On a sort key that is a column: one comparison, or both ends."""
        if low is not None and high is not None:
            self._drop_ranges(low, high, is_exact=False)
            return Condition(
                attribute=attribute.name,
                comparison="between",
                value=" and ".join(
                    self._bound(field, test, place, is_plain=True)
                    for test, place in ((low, 0), (high, -1))
                ),
            )
        one = low or high
        assert one is not None
        self.left.remove(one)
        comparison: Comparison = one.operator  # type: ignore[assignment]
        return Condition(
            attribute=attribute.name,
            comparison=comparison,
            value=self._bound(field, one, 0, is_plain=True),
        )

    def _drop_ranges(self, low: Test | None, high: Test | None, *, is_exact: bool) -> None:
        """Ends that a range of keys takes with it are tested once more where they do not count."""
        for test in dict.fromkeys(one for one in (low, high) if one is not None):
            self.left.remove(test)
            if test.operator in ("<", ">") and not is_exact:
                self._test_by_application(test)

    def _bound(self, field: Field, test: Test, position: int, *, is_plain: bool = False) -> str:
        value = test.values[position]
        if isinstance(value, Constant):
            return self._literal(test.ref, value, field.format, is_plain=is_plain)
        suffix = ".from" if value.name.endswith(".from") else ".to"
        return field.written(suffix)

    def _beginning(
        self, attribute: Attribute, parts: Segments, lead: str, field: Field, test: Test
    ) -> Condition | None:
        (value,) = test.values
        if not isinstance(value, Constant) or str(value.value).endswith(" "):
            return None
        self.left.remove(test)
        text = self._literal(test.ref, value, field.format, is_plain=parts.is_plain)
        return Condition(attribute=attribute.name, comparison="begins_with", value=lead + text)

    def _keeps_order(self, attribute: Attribute, parts: Segments, field: Field) -> bool:
        """Whether items come in the order in which the source sorts a field's values."""
        column = self.planner.column(field.ref)
        if (
            column is None
            or column.collation
            or column.kind in ("enum", "set", "json", "array", "boolean", "time")
        ):
            return False
        fold = self.planner.fold(field.ref)
        if parts.is_plain:
            return not fold and attribute.type in ("S", "N", "B")
        if fold or field.format in ("ci", "nocase", "ai"):
            return field.format == fold
        kind = "N" if column.kind in ("integer", "decimal", "float") else "S"
        return is_order_preserving(field.format, kind)

    # What else lies in the range that is read.

    def _keep_types_apart(self, conditions: list[Condition]) -> None:
        """Items of other types in the same range are filtered out by what they say they are."""
        meets = self.types_met(conditions)
        if not meets:
            return
        name = type_attribute(self.home.table)
        held = self.entity.attribute(name) if name else None
        if held is None or not self.home.has(held):
            raise NotServed(
                f"items of {meets[0]} lie among those of {self.entity.name} in {self.home.name},"
                " and nothing tells them apart"
            )
        if held.name in self.home.keys:
            return
        self.filters.append(Condition(attribute=held.name, value=self.entity.name))

    def types_met(self, conditions: list[Condition]) -> list[str]:
        return [
            other.name
            for other in self.home.table.entities
            if other is not self.entity and (not conditions or self._may_meet(other, conditions))
        ]

    def _may_meet(self, other: Entity, conditions: list[Condition]) -> bool:
        keys = [other.attribute(name) for name in self.home.keys]
        if any(key is None for key in keys):
            return False
        theirs = [segments(other, key) for key in keys if key is not None]
        if not may_be_equal(segments(self.entity, self.keys[0]), theirs[0]):
            return False
        for condition in conditions[1:]:
            ours = segments(self.entity, self.keys[1])
            if condition.comparison == "=":
                return may_be_equal(ours, theirs[1])
            if condition.comparison == "begins_with":
                return may_begin_with(theirs[1], condition.value)
            if condition.comparison == "between" and not ours.is_plain:
                return may_begin_with(theirs[1], ours.texts[0])
        return True

    def _refuse_absent_rows(self) -> None:
        """Rows that an index does not have, because they lack one of its keys."""
        implied = {
            ref
            for test in self.question.tests
            if test.operator != "is null"
            for ref in self.question.same(test.ref)
        }
        for key in self.keys:
            if key.constant is not None:
                continue
            refs = columns_of(self.entity, key)
            if not any(ref in implied or not self._may_be_null(key, ref) for ref in refs):
                raise NotServed(
                    f"rows without {' and '.join(ref.column for ref in refs)} are not in"
                    f" {self.home.name}"
                )

    def _may_be_null(self, key: Attribute, ref: Ref) -> bool:
        column = self.planner.column(ref)
        table = self.planner.table(ref.table)
        # SQLite lets a primary key be NULL; such a row has no item, which `test` tells.
        is_key = table is not None and ref.column in table.primary_key
        if column is None or (column.is_nullable and not is_key):
            return True
        # A column of another row is absent where that row is.
        return any(
            (own := self.planner.column(before)) is None or own.is_nullable
            for text in key.through
            if (join := parse_join(text)) is not None
            for before in join.before
        )

    def _add_joined_rows(self) -> None:
        """An inner join leaves out the rows that refer to nothing."""
        implied = {
            ref
            for test in self.question.tests
            if test.operator != "is null"
            for ref in self.question.same(test.ref)
        }
        for join in self.question.joins:
            if join.is_outer:
                continue
            for left, right in join.pairs:
                own, other = (right, left) if left.table == join.table else (left, right)
                if left in implied or right in implied or self._is_always_joined(own, other):
                    continue
                attribute = self._existence(own, other)
                if attribute is None or not self.home.has(attribute):
                    raise NotServed(
                        f"rows whose {own} leads to no row of {other.table} are not in the answer,"
                        " and no attribute tells them"
                    )
                self._add_condition(attribute, "exists", "")

    def _is_always_joined(self, own: Ref, other: Ref) -> bool:
        column = self.planner.column(own)
        return column is not None and not column.is_nullable and self._is_enforced(own, other)

    def _is_enforced(self, own: Ref, other: Ref) -> bool:
        """Whether the source declares the reference."""
        table = self.planner.table(own.table)
        return table is not None and any(
            key.referenced_table == other.table and own.column in key.columns
            for key in table.foreign_keys
        )

    def _existence(self, own: Ref, other: Ref) -> Attribute | None:
        """An attribute that is there only if the other row is."""
        if self._is_enforced(own, other):
            return self.holder(own)
        for attribute in self.entity.attributes:
            ref = Ref.parse(attribute.column or "")
            column = self.planner.column(ref)
            if ref.table == other.table and attribute.through and column is not None:
                if not column.is_nullable:
                    return attribute
        return None

    # Tests that no key makes.

    def _filter(self, test: Test) -> None:
        attribute = self.holder(test.ref)
        if attribute is None or not self.home.has(attribute):
            where = f"{self.home.name} does not project" if attribute else "no item holds"
            raise NotServed(f"{where} {test.ref.column}, which is tested")
        if test.operator in _FILTERS:
            self._add_condition(attribute, _FILTERS[test.operator], "")
            return
        column = self.planner.column(test.ref)
        is_ordered = test.operator in ("<", "<=", ">", ">=", "between")
        if attribute.type not in SCALARS or column is None:
            raise NotServed(f"{test.ref} is no single value, and is compared with one")
        if is_ordered:
            self._refuse_collation(test.ref)
        if is_ordered and column.kind in ("enum", "boolean", "time"):
            raise NotServed(f"{test.ref} is compared in an order that its values do not have")
        if test.operator == "contains":
            raise NotServed(f"the inside of {test.ref} is searched")
        if self.planner.fold(test.ref) or attribute.name in self.home.keys:
            self._test_by_application(test)
            return
        self.filters.append(self._condition(attribute, test))

    def _refuse_collation(self, ref: Ref) -> None:
        """Neither keys nor filters have the order of a language."""
        column = self.planner.column(ref)
        if column is not None and column.collation:
            raise NotServed(
                f"{ref} is sorted by the collation {column.collation}; keys are sorted by bytes"
            )

    def _add_condition(self, attribute: Attribute, comparison: Comparison, value: str) -> None:
        condition = Condition(attribute=attribute.name, comparison=comparison, value=value)
        if attribute.name in self.home.keys:
            if comparison == "not_exists":
                raise NotServed(f"{self.home.name} has only items with {attribute.name}")
            return
        if condition not in self.filters:
            self.filters.append(condition)

    def _test_by_application(self, test: Test) -> None:
        attribute = self._held(test.ref)
        self.tested.append(self._condition(attribute, test))

    def _condition(self, attribute: Attribute, test: Test) -> Condition:
        parts = segments(self.entity, attribute)
        field = parts.fields[0]
        texts = [self._operand(field, test, value) for value in test.values]
        comparison: Comparison = test.operator  # type: ignore[assignment]
        joint = " and " if test.operator == "between" else " or "
        return Condition(attribute=attribute.name, comparison=comparison, value=joint.join(texts))

    def _operand(self, field: Field, test: Test, value: Value) -> str:
        if isinstance(value, Constant):
            return self._literal(test.ref, value, "", is_plain=True)
        own = str(Ref("", test.ref.column))
        suffix = value.name.removeprefix(str(test.ref)).removeprefix(own)
        return field.written(suffix)

    # Order and limit.

    def _request(
        self,
        pattern: str,
        conditions: list[Condition],
        following: list[Field],
        lookups: list[Access],
    ) -> Planned:
        question, home = self.question, self.home
        wanted = self._wanted_order()
        is_sorted = self._is_sorted(wanted, following) and self.requests == 1
        is_whole = bool(self.filters or self.tested)
        is_counted = question.limit is not None or question.offset is not None
        if wanted and not is_sorted:
            for sorting in wanted:
                self._held(sorting.ref)
                self._refuse_collation(sorting.ref)
        is_scan = not conditions
        is_get = (
            home.index is None
            and not is_whole
            and all(one.comparison == "=" for one in conditions)
            and len(conditions) == len(home.keys)
            and not any(is_sharded(segments(self.entity, key)) for key in self.keys)
        )
        limit = question.limit if isinstance(question.limit, int) else None
        skips = question.offset if isinstance(question.offset, int) else 0
        is_direct = not is_whole and (is_sorted or not wanted) and self.requests == 1 and not skips
        access = Access(
            pattern=pattern,
            request="Scan" if is_scan else "GetItem" if is_get else "Query",
            table=home.table.name,
            index=home.index.name if home.index else None,
            entity=self.entity.name,
            key=conditions,
            filter=self.filters,
            tested=self.tested,
            is_descending=bool(wanted) and wanted[0].is_descending and is_sorted and not is_get,
            limit=limit if is_direct and not is_get else None,
            first=limit if not is_direct and not is_get else None,
            skips=skips,
            sorts=[] if is_sorted or (is_get and self.requests == 1) else self._sorts(wanted),
            requests=self.requests * self._buckets_read(),
            why=self._why(wanted, is_sorted=is_sorted, is_get=is_get, is_scan=is_scan),
        )
        rank = (
            is_scan,
            len(lookups),
            not is_get,
            is_counted and bool(wanted) and not is_sorted,
            len([one for one in self.filters if one.value != self.entity.name]),
            len(self.tested),
            self.requests,
            bool(wanted) and not is_sorted,
            len(self.filters),
            home.index is not None,
            -len(conditions),
        )
        return Planned([access, *lookups], tuple(float(one) for one in rank))

    def _wanted_order(self) -> list[Sorting]:
        """Without columns that have one value in the whole answer."""
        fixed = {
            ref
            for test in self.question.tests
            if test.operator == "="
            for ref in self.question.same(test.ref)
        }
        wanted = [one for one in self.question.order if one.ref not in fixed]
        given = {ref.column for ref in fixed if ref.table == self.question.table}
        return [] if self.planner.is_unique(self.question.table, given) else wanted

    def _is_sorted(self, wanted: list[Sorting], following: list[Field]) -> bool:
        if not wanted:
            return True
        if len({one.is_descending for one in wanted}) > 1 or len(wanted) > len(following):
            return False
        attribute = self.keys[1]
        parts = segments(self.entity, attribute)
        return all(
            sorting.ref in self.question.same(field.ref)
            and self._keeps_order(attribute, parts, field)
            and (field.ref.table == self.entity.source or self._is_followed(attribute))
            and self._nulls_are_in_place(field.ref)
            for sorting, field in zip(wanted, following, strict=False)
        )

    def _nulls_are_in_place(self, ref: Ref) -> bool:
        """NULL is a mark before all values in a key; PostgreSQL sorts it behind them."""
        column = self.planner.column(ref)
        if column is None or not column.is_nullable or ref in self.planner.never_null:
            return True
        tested = {one for test in self.question.tests if test.operator != "is null" for one in
                  self.question.same(test.ref)}  # fmt: skip
        return ref in tested or self.planner.inventory.dialect != "postgresql"

    def _sorts(self, wanted: list[Sorting]) -> list[str]:
        return [
            f"{self._held(one.ref).name}{' desc' if one.is_descending else ''}" for one in wanted
        ]

    def _buckets_read(self) -> int:
        """With a limit, the newest one, and the one before where it has too little."""
        is_limited = self.question.limit is not None and not (self.filters or self.tested)
        return min(self.buckets, 2) if is_limited else self.buckets

    def _why(self, wanted: list[Sorting], *, is_sorted: bool, is_get: bool, is_scan: bool) -> str:
        whys = []
        if is_scan:
            whys.append(f"{self.home.name} is small: a Scan reads all of it.")
        if self.buckets > 1:
            whys.append("One request for each bucket, in order, until there are enough rows.")
        if self.requests > 1:
            kind = "One request for each value or shard, at the same time."
            whys.append(kind)
        named = [one.attribute for one in self.filters if one.value != self.entity.name]
        if named:
            whys.append(f"Filtered by {' and '.join(named)} after reading.")
        if self.tested:
            names = " and ".join(one.attribute for one in self.tested)
            whys.append(f"The application tests {names} itself.")
        if wanted and not is_sorted and not is_get:
            names = " and ".join(one.ref.column for one in wanted)
            whys.append(f"The application sorts by {names} once it has all of them.")
        if self.question.finish:
            whys.append(f"The application {self.question.finish}.")
        return " ".join(whys)
