"""A request of a design, sent with what a caller passes: the items that the application has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cmp_to_key
from itertools import product
from typing import Any

from partita.database.item.attribute_values import AttributeValue, Item
from partita_migrate.model.design import (
    AccessCondition,
    Entity,
    ItemAttribute,
    PatternAccess,
    TableDesign,
)
from partita_migrate.model.items.item_maker import of_type, order
from partita_migrate.model.keys.date_buckets import BUCKET, buckets
from partita_migrate.model.keys.key_formats import NotEncodable, bound_text, field_text, plain_text
from partita_migrate.model.keys.key_templates import SHARD, TemplateField, filled, template_fields
from partita_migrate.proving.read_proofs.answer_rows import (
    RequestNotPossible,
    Values,
    comparable,
    count_of,
    nulls_before,
)
from partita_migrate.proving.sandbox.private_dynamodb import DynamoDBClient
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import Inventory, SourceColumn
from partita_migrate.understanding.schema.text_folds import is_beginning
from partita_migrate.understanding.statements.literal_values import fold_of, literal_value
from partita_migrate.understanding.statements.resolved_statements import (
    ColumnTest,
    Constant,
    Parameter,
    ResolvedQuery,
)

Given = dict[str, list[AttributeValue]]
"""Values by the names that the requests of a model use; several of IN."""

_END = re.compile(r"\.(from|to)(\.\d+)?$")
_LOW = (">", ">=")
_HIGH = ("<", "<=")
_KEY_OPERATORS = {"=": "{} = {}", "<": "{} < {}", "<=": "{} <= {}", ">": "{} > {}",
                  ">=": "{} >= {}", "begins_with": "begins_with({}, {})"}  # fmt: skip


class ReadRequests:
    """Sends the requests of one access of a design."""

    def __init__(
        self,
        server: DynamoDBClient,
        inventory: Inventory,
        table: TableDesign,
        access: PatternAccess,
        question: ResolvedQuery,
        prefix: str = "",
    ) -> None:
        """`question`: as it is asked of the items that the access reads."""
        self.question = question
        self.server = server
        self.inventory = inventory
        self.table = table
        self.access = access
        self.prefix = prefix
        entity = table.entity(access.entity)
        assert entity is not None
        self.entity: Entity = entity
        self.columns = {
            ColumnRef(one.name, column.name): column
            for one in inventory.tables
            for column in one.columns
        }

    def items(self, values: Values, *, page_items: int | None = None) -> list[Item]:
        """What the application ends up with; `page_items` reads in pages of so many."""
        question = self.question
        given = self._given(question, values)
        if given is None:
            return []
        access = self.access
        first, skips = count_of(question.limit, values), count_of(question.offset, values) or 0
        wanted = None if first is None else first + skips
        found = self._read(given, wanted, page_items)
        if access.sorts:
            found.sort(key=cmp_to_key(self._compared))
        return found[skips : None if first is None else wanted]

    # What the caller passes.

    def _given(self, question: ResolvedQuery, values: Values) -> Given | None:
        """None when a value is NULL, which no comparison finds."""
        given: Given = {}
        self._nulls: set[str] = set()
        for test in question.tests:
            found = [self._value(test, one, values) for one in test.values]
            found_all = list(found)
            if test.operator in ("in", "not in"):
                if test.operator == "not in" and None in found:
                    return None
                found = [one for one in found if one is not None]
                if not found and test.operator == "in":
                    return None
            known = [one for one in found if one is not None]
            if len(known) < len(found):
                return None
            for ref in question.same(test.ref):
                self._name_values(given, ref, test, found_all, known)
        return given

    def _value(
        self, test: ColumnTest, value: Parameter | Constant, values: Values
    ) -> AttributeValue | None:
        if isinstance(value, Parameter):
            return values.get(value.name)
        column = self.columns[test.ref]
        return literal_value(column, value.value, self.inventory.dialect)

    def _name_values(
        self,
        given: Given,
        ref: ColumnRef,
        test: ColumnTest,
        values: list[AttributeValue | None],
        known: list[AttributeValue],
    ) -> None:
        names = [str(ref)]
        if ref.table == self.entity.source:
            names.append(str(ColumnRef("", ref.column)))
        for name in names:
            if test.operator == "in":
                given[name + test.first_suffix] = known
            for place, (value, held) in enumerate(zip(test.values, values, strict=True)):
                if isinstance(value, Parameter):
                    suffix = test.suffix(value)
                elif test.operator in (*_LOW, *_HIGH, "between"):
                    # No request names it; it tells which buckets to read.
                    suffix = ".to" if test.operator in _HIGH or place else ".from"
                else:
                    continue
                if held is None:
                    self._nulls.add(name + suffix)
                else:
                    given.setdefault(name + suffix, [held])

    # Sending.

    def _read(self, given: Given, wanted: int | None, page_items: int | None) -> list[Item]:
        found: list[Item] = []
        for one in self._each(given):
            if self.access.request == "GetItem":
                found += self._get(one)
            else:
                found += self._query(one, given, wanted, page_items)
            if self._is_in_order and wanted is not None and len(found) >= wanted:
                break
        return found

    @property
    def _is_in_order(self) -> bool:
        """Whether what later requests bring comes after what earlier ones brought."""
        names = [part.name for one in self.access.key for part in template_fields(one.value)]
        return not self.access.sorts and any(name.endswith(BUCKET) for name in names)

    def _each(self, given: Given) -> Iterator[dict[str, AttributeValue]]:
        """One for every value of an IN, and for every shard."""
        names = dict.fromkeys(
            part.name for one in self.access.key for part in template_fields(one.value)
        )
        options: list[list[tuple[str, AttributeValue]]] = []
        for name in names:
            if name == SHARD:
                keys = (self.entity.attribute(one.attribute) for one in self.access.key)
                count = max((key.shards for key in keys if key is not None), default=1)
                values: list[AttributeValue] = [{"S": str(number)} for number in range(count)]
            elif name.endswith(BUCKET):
                values = list(self._buckets(name, given))
            elif name in given:
                values = given[name]
            else:
                raise RequestNotPossible(
                    f"the request needs {{{name}}}, which the pattern does not give"
                )
            unique = {str(sorted(value.items())): value for value in values}
            options.append([(name, value) for value in unique.values()])
        seen: set[str] = set()
        for chosen in product(*options):
            given_one = dict(chosen)
            if any(self._is_empty_key(one, given_one) for one in self.access.key):
                # The service has no empty keys, and refuses to look for one.
                continue
            # Values that a collation takes for the same have one key.
            try:
                key = repr([self._filled(one.value, given_one) for one in self.access.key])
            except NotEncodable:
                # No row has a value that the key does not hold.
                continue
            if key not in seen:
                seen.add(key)
                yield given_one

    def _buckets(self, name: str, given: Given) -> Iterator[AttributeValue]:
        """A date of each bucket that rows may be in: of all, or of the range that is asked for."""
        key = self.access.key[0]
        attribute = self._attribute(key.attribute)
        (part,) = [one for one in template_fields(key.value) if one.name == name]
        column = name.removesuffix(BUCKET)
        first, last = attribute.first, attribute.last
        for bound, values in given.items():
            end = _END.search(bound)
            if end is None or bound[: end.start()] != column:
                continue
            for value in values:
                if end[1] == "from":
                    first = max(first, plain_text(value))
                else:
                    last = min(last, plain_text(value))
        for day in buckets(part.format, first, last, is_descending=self.access.is_descending):
            yield {"S": day}

    def _is_empty_key(self, one: AccessCondition, given: Mapping[str, AttributeValue]) -> bool:
        if one.comparison != "=":
            return False
        parts = template_fields(one.value)
        is_alone = len(parts) == 1 and one.value.startswith("{") and one.value.endswith("}")
        # Of blanks alone, a collation may leave nothing.
        return (
            is_alone
            and given[parts[0].name].keys() <= {"S", "B"}
            and not self._filled(one.value, given)
        )

    def _filled(self, template: str, given: Mapping[str, AttributeValue]) -> str:
        return filled(template, lambda part: _part_text(part, given[part.name]))

    def _attribute(self, name: str) -> ItemAttribute:
        found = self.entity.attribute(name)
        if found is None:
            raise RequestNotPossible(f"{self.entity.name} has no attribute {name!r}")
        return found

    def _operand(
        self, attribute: ItemAttribute, template: str, given: Mapping[str, AttributeValue]
    ) -> AttributeValue:
        """A value of a condition, of the attribute's type."""
        parts = template_fields(template)
        for part in parts:
            if part.name not in given:
                raise RequestNotPossible(
                    f"the request needs {{{part.name}}}, which the pattern does not give"
                )
        is_text = attribute.template is not None or attribute.constant is not None
        if len(parts) == 1 and template.startswith("{") and template.endswith("}") and not is_text:
            return of_type(attribute.type, given[parts[0].name])
        if not parts and attribute.type == "BOOL":
            return {"BOOL": template in ("True", "true", "1")}
        text = filled(template, lambda part: _part_text(part, given[part.name]))
        return {attribute.type: text}

    def _key(self, given: Mapping[str, AttributeValue]) -> Item:
        return {
            one.attribute: self._operand(self._attribute(one.attribute), one.value, given)
            for one in self.access.key
        }

    def _get(self, given: Mapping[str, AttributeValue]) -> list[Item]:
        answer = self.server.call(
            "GetItem", TableName=self.prefix + self.table.name, Key=self._key(given)
        )
        return [answer["Item"]] if "Item" in answer else []

    def _query(
        self,
        given: dict[str, AttributeValue],
        all_given: Given,
        wanted: int | None,
        page_items: int | None,
    ) -> list[Item]:
        access = self.access
        flat = {name: values[0] for name, values in all_given.items()} | given
        request: dict[str, Any] = {"TableName": self.prefix + self.table.name}
        if access.index:
            request["IndexName"] = access.index
        expression = _Expression()
        conditions = [self._key_condition(expression, one, flat) for one in access.key]
        if None in conditions:
            return []
        if conditions:
            request["KeyConditionExpression"] = " AND ".join(one for one in conditions if one)
            request["ScanIndexForward"] = not access.is_descending
        if any(self._is_reversed(one, all_given, flat) for one in access.filter):
            return []
        tests = [self._filter(expression, one, all_given, flat) for one in access.filter]
        if tests:
            request["FilterExpression"] = " AND ".join(tests)
        if expression.names:
            request["ExpressionAttributeNames"] = expression.names
        if expression.values:
            request["ExpressionAttributeValues"] = expression.values
        is_limited = wanted is not None and not access.sorts
        if page_items is not None:
            request["Limit"] = page_items
        elif is_limited and access.limit is not None:
            request["Limit"] = max(access.limit, 1)
        found: list[Item] = []
        while True:
            answer = self.server.call(access.request, **request)
            found += [item for item in answer["Items"] if self._passes(item, all_given, flat)]
            is_enough = is_limited and wanted is not None and len(found) >= wanted
            if "LastEvaluatedKey" not in answer or is_enough:
                return found
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def _key_condition(
        self, expression: _Expression, one: AccessCondition, given: Mapping[str, AttributeValue]
    ) -> str | None:
        """None for a range whose end is before its beginning: the service refuses to look. Empty
        for one that has all."""
        attribute = self._attribute(one.attribute)
        if one.comparison == "between":
            ends = [self._operand(attribute, part, given) for part in one.value.split(" and ")]
            if order(ends[0]) > order(ends[-1]):
                return None
            name = expression.name(one.attribute)
            if ends[0] == {"S": ""}:
                return f"{name} <= {expression.value(ends[-1])}"
            first, last = map(expression.value, ends)
            return f"{name} BETWEEN {first} AND {last}"
        form = _KEY_OPERATORS.get(one.comparison)
        if form is None:
            raise RequestNotPossible(f"{one.comparison} is no comparison of a key")
        operand = self._operand(attribute, one.value, given)
        if operand in ({"S": ""}, {"B": ""}):
            # Every key is behind an empty one, which the service refuses to compare with.
            return "" if one.comparison in _LOW else None
        return form.format(expression.name(one.attribute), expression.value(operand))

    # Tests after reading.

    def _filter(
        self,
        expression: _Expression,
        one: AccessCondition,
        given: Given,
        flat: Mapping[str, AttributeValue],
    ) -> str:
        name = expression.name(one.attribute)
        if one.comparison == "exists":
            return f"attribute_exists({name})"
        if one.comparison == "not_exists":
            return f"attribute_not_exists({name})"
        values = [expression.value(value) for value in self._operands(one, given, flat)]
        if one.comparison == "between":
            return f"{name} BETWEEN {values[0]} AND {values[1]}"
        if one.comparison == "in":
            return f"{name} IN ({', '.join(values)})"
        if one.comparison == "not in":
            # A NULL is in no list and outside of none.
            return f"(attribute_exists({name}) AND NOT {name} IN ({', '.join(values)}))"
        if one.comparison == "<>":
            return f"(attribute_exists({name}) AND {name} <> {values[0]})"
        if one.comparison == "begins_with":
            return f"begins_with({name}, {values[0]})"
        return f"{name} {one.comparison} {values[0]}"

    def _is_reversed(
        self, one: AccessCondition, given: Given, flat: Mapping[str, AttributeValue]
    ) -> bool:
        """A range whose end is before its beginning, which the service refuses to test."""
        if one.comparison != "between":
            return False
        first, last = self._operands(one, given, flat)
        return order(first) > order(last)

    def _operands(
        self, one: AccessCondition, given: Given, flat: Mapping[str, AttributeValue]
    ) -> list[AttributeValue]:
        attribute = self._attribute(one.attribute)
        if one.comparison in ("in", "not in"):
            # A NULL among them finds nothing.
            texts = [
                text
                for text in one.value.split(" or ")
                if not any(part.name in self._nulls for part in template_fields(text))
            ]
        else:
            texts = one.value.split(" and ") if one.comparison == "between" else [one.value]
        return [self._operand(attribute, text, flat) for text in texts]

    def _passes(self, item: Item, given: Given, flat: Mapping[str, AttributeValue]) -> bool:
        """The tests that the application makes itself."""
        return all(
            self._holds(one, item.get(one.attribute), self._operands(one, given, flat))
            for one in self.access.tested
        )

    def _holds(
        self, one: AccessCondition, value: AttributeValue | None, operands: list[AttributeValue]
    ) -> bool:
        if value is None:
            return False
        fold = self._fold(one.attribute)
        if one.comparison == "begins_with":
            return is_beginning(plain_text(operands[0]), plain_text(value), fold)
        held, *wanted = (comparable(each, fold) for each in (value, *operands))
        comparisons = {
            "=": lambda: held == wanted[0],
            "<>": lambda: held != wanted[0],
            "<": lambda: held < wanted[0],
            "<=": lambda: held <= wanted[0],
            ">": lambda: held > wanted[0],
            ">=": lambda: held >= wanted[0],
            "between": lambda: wanted[0] <= held <= wanted[-1],
            "in": lambda: held in wanted,
            "not in": lambda: held not in wanted,
        }
        return bool(comparisons[one.comparison]())

    def _fold(self, name: str) -> str:
        attribute = self.entity.attribute(name)
        column = self._column(attribute)
        return fold_of(column, self.inventory.dialect) if column is not None else ""

    def _column(self, attribute: ItemAttribute | None) -> SourceColumn | None:
        if attribute is None or not attribute.column:
            return None
        return self.columns.get(ColumnRef.parse(attribute.column))

    def _compared(self, left: Item, right: Item) -> int:
        """In the order of `sorts`; NULL first, but last on PostgreSQL."""
        for text in self.access.sorts:
            name = text.removesuffix(" desc")
            sign = -1 if text.endswith(" desc") else 1
            one, other = left.get(name), right.get(name)
            if one is None or other is None:
                if (one is None) == (other is None):
                    continue
                before = nulls_before(self.inventory.dialect)
                return sign * (before if one is None else -before)
            fold = self._fold(name)
            ours, theirs = comparable(one, fold), comparable(other, fold)
            if ours != theirs:
                return sign * (-1 if ours < theirs else 1)
        return 0


def _part_text(part: TemplateField, value: AttributeValue) -> str:
    """A field of a request; the ends of a range may be beyond what the key holds."""
    end = _END.search(part.name)
    if end is None:
        return field_text(part.format, value)
    text = bound_text(part.format, value, is_high=end[1] == "to")
    if text is None:
        raise NotEncodable("Nothing is within the range.")
    return text


class _Expression:
    """Names and values of the expressions of one request."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, AttributeValue] = {}

    def name(self, attribute: str) -> str:
        found = next((one for one, known in self.names.items() if known == attribute), None)
        if found is None:
            found = f"#n{len(self.names)}"
            self.names[found] = attribute
        return found

    def value(self, value: AttributeValue) -> str:
        name = f":v{len(self.values)}"
        self.values[name] = value
        return name
