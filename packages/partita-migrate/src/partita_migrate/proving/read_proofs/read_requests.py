"""Sends a request of a design with a caller's values, and returns the items that the application
ends up with."""

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

NamedValues = dict[str, list[AttributeValue]]
"""Values by the names that the model's requests use; IN has several."""

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
        """`question` is the part of the statement that the access's items answer."""
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
            ColumnRef(source_table.name, column.name): column
            for source_table in inventory.tables
            for column in source_table.columns
        }

    def items(self, values: Values, *, page_items: int | None = None) -> list[Item]:
        """Returns the items that the application ends up with; `page_items` reads in pages of that
        size."""
        question = self.question
        named_values = self._name_parameters(question, values)
        if named_values is None:
            return []
        access = self.access
        first, skips = count_of(question.limit, values), count_of(question.offset, values) or 0
        items_needed = None if first is None else first + skips
        items = self._read(named_values, items_needed, page_items)
        if access.sorts:
            items.sort(key=cmp_to_key(self._compared))
        return items[skips : None if first is None else items_needed]

    # What the caller passes.

    def _name_parameters(self, question: ResolvedQuery, values: Values) -> NamedValues | None:
        """Returns the caller's values by name; None when a value is NULL, which matches nothing."""
        named_values: NamedValues = {}
        self._nulls: set[str] = set()
        for test in question.tests:
            values_of_test = [self._value(test, value, values) for value in test.values]
            all_values = list(values_of_test)
            if test.operator in ("in", "not in"):
                if test.operator == "not in" and None in values_of_test:
                    return None
                values_of_test = [value for value in values_of_test if value is not None]
                if not values_of_test and test.operator == "in":
                    return None
            non_null = [value for value in values_of_test if value is not None]
            if len(non_null) < len(values_of_test):
                return None
            for ref in question.same(test.ref):
                self._name_values(named_values, ref, test, all_values, non_null)
        return named_values

    def _value(
        self, test: ColumnTest, value: Parameter | Constant, values: Values
    ) -> AttributeValue | None:
        if isinstance(value, Parameter):
            return values.get(value.name)
        column = self.columns[test.ref]
        return literal_value(column, value.value, self.inventory.dialect)

    def _name_values(
        self,
        named_values: NamedValues,
        ref: ColumnRef,
        test: ColumnTest,
        values: list[AttributeValue | None],
        non_null: list[AttributeValue],
    ) -> None:
        names = [str(ref)]
        if ref.table == self.entity.source:
            names.append(str(ColumnRef("", ref.column)))
        for name in names:
            if test.operator == "in":
                named_values[name + test.first_suffix] = non_null
            for place, (value, value_passed) in enumerate(zip(test.values, values, strict=True)):
                if isinstance(value, Parameter):
                    suffix = test.suffix(value)
                elif test.operator in (*_LOW, *_HIGH, "between"):
                    # No request uses the constant by name, but it limits the buckets to read.
                    suffix = ".to" if test.operator in _HIGH or place else ".from"
                else:
                    continue
                if value_passed is None:
                    self._nulls.add(name + suffix)
                else:
                    named_values.setdefault(name + suffix, [value_passed])

    # Sending.

    def _read(
        self, named_values: NamedValues, items_needed: int | None, page_items: int | None
    ) -> list[Item]:
        items: list[Item] = []
        for request_values in self._each_request(named_values):
            if self.access.request == "GetItem":
                items += self._get(request_values)
            else:
                items += self._query(request_values, named_values, items_needed, page_items)
            if self._is_in_order and items_needed is not None and len(items) >= items_needed:
                break
        return items

    @property
    def _is_in_order(self) -> bool:
        """True when later requests return items that sort after those of earlier ones."""
        names = [
            part.name for condition in self.access.key for part in template_fields(condition.value)
        ]
        return not self.access.sorts and any(name.endswith(BUCKET) for name in names)

    def _each_request(self, named_values: NamedValues) -> Iterator[dict[str, AttributeValue]]:
        """Yields the values of each request: one for every value of an IN and every shard."""
        names = dict.fromkeys(
            part.name for condition in self.access.key for part in template_fields(condition.value)
        )
        options: list[list[tuple[str, AttributeValue]]] = []
        for name in names:
            if name == SHARD:
                keys = (self.entity.attribute(condition.attribute) for condition in self.access.key)
                count = max((key.shards for key in keys if key is not None), default=1)
                values: list[AttributeValue] = [{"S": str(number)} for number in range(count)]
            elif name.endswith(BUCKET):
                values = list(self._buckets(name, named_values))
            elif name in named_values:
                values = named_values[name]
            else:
                raise RequestNotPossible(
                    f"the request needs {{{name}}}, which the pattern does not give"
                )
            unique = {str(sorted(value.items())): value for value in values}
            options.append([(name, value) for value in unique.values()])
        sent_keys: set[str] = set()
        for chosen in product(*options):
            request_values = dict(chosen)
            if any(self._is_empty_key(condition, request_values) for condition in self.access.key):
                # DynamoDB has no empty keys, and refuses to look for one.
                continue
            # Values that the collation considers equal have the same key; it is read once.
            try:
                key = repr(
                    [self._fill(condition.value, request_values) for condition in self.access.key]
                )
            except NotEncodable:
                # The key cannot represent this value, so no row has it.
                continue
            if key not in sent_keys:
                sent_keys.add(key)
                yield request_values

    def _buckets(self, name: str, named_values: NamedValues) -> Iterator[AttributeValue]:
        """Yields a date in each bucket that matching rows may be in: all, or those of the requested
        range."""
        key = self.access.key[0]
        attribute = self._attribute(key.attribute)
        (part,) = [field for field in template_fields(key.value) if field.name == name]
        column = name.removesuffix(BUCKET)
        first, last = attribute.first, attribute.last
        for bound, values in named_values.items():
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

    def _is_empty_key(
        self, condition: AccessCondition, named_values: Mapping[str, AttributeValue]
    ) -> bool:
        if condition.comparison != "=":
            return False
        parts = template_fields(condition.value)
        is_alone = (
            len(parts) == 1 and condition.value.startswith("{") and condition.value.endswith("}")
        )
        # A collation may ignore blanks, which leaves nothing of a blank text.
        return (
            is_alone
            and named_values[parts[0].name].keys() <= {"S", "B"}
            and not self._fill(condition.value, named_values)
        )

    def _fill(self, template: str, named_values: Mapping[str, AttributeValue]) -> str:
        return filled(template, lambda part: _part_text(part, named_values[part.name]))

    def _attribute(self, name: str) -> ItemAttribute:
        attribute = self.entity.attribute(name)
        if attribute is None:
            raise RequestNotPossible(f"{self.entity.name} has no attribute {name!r}")
        return attribute

    def _operand(
        self, attribute: ItemAttribute, template: str, named_values: Mapping[str, AttributeValue]
    ) -> AttributeValue:
        """Returns the value of a condition, in the attribute's type."""
        parts = template_fields(template)
        for part in parts:
            if part.name not in named_values:
                raise RequestNotPossible(
                    f"the request needs {{{part.name}}}, which the pattern does not give"
                )
        is_text = attribute.template is not None or attribute.constant is not None
        if len(parts) == 1 and template.startswith("{") and template.endswith("}") and not is_text:
            return of_type(attribute.type, named_values[parts[0].name])
        if not parts and attribute.type == "BOOL":
            return {"BOOL": template in ("True", "true", "1")}
        text = filled(template, lambda part: _part_text(part, named_values[part.name]))
        return {attribute.type: text}

    def _key(self, named_values: Mapping[str, AttributeValue]) -> Item:
        return {
            condition.attribute: self._operand(
                self._attribute(condition.attribute), condition.value, named_values
            )
            for condition in self.access.key
        }

    def _get(self, named_values: Mapping[str, AttributeValue]) -> list[Item]:
        answer = self.server.call(
            "GetItem", TableName=self.prefix + self.table.name, Key=self._key(named_values)
        )
        return [answer["Item"]] if "Item" in answer else []

    def _query(
        self,
        request_values: dict[str, AttributeValue],
        all_values: NamedValues,
        items_needed: int | None,
        page_items: int | None,
    ) -> list[Item]:
        access = self.access
        flat = {name: values[0] for name, values in all_values.items()} | request_values
        request: dict[str, Any] = {"TableName": self.prefix + self.table.name}
        if access.index:
            request["IndexName"] = access.index
        expression = _Expression()
        conditions = [self._key_condition(expression, condition, flat) for condition in access.key]
        if None in conditions:
            return []
        if conditions:
            request["KeyConditionExpression"] = " AND ".join(
                condition for condition in conditions if condition
            )
            request["ScanIndexForward"] = not access.is_descending
        if any(self._is_reversed(condition, all_values, flat) for condition in access.filter):
            return []
        tests = [
            self._filter(expression, condition, all_values, flat) for condition in access.filter
        ]
        if tests:
            request["FilterExpression"] = " AND ".join(tests)
        if expression.names:
            request["ExpressionAttributeNames"] = expression.names
        if expression.values:
            request["ExpressionAttributeValues"] = expression.values
        is_limited = items_needed is not None and not access.sorts
        if page_items is not None:
            request["Limit"] = page_items
        elif is_limited and access.limit is not None:
            request["Limit"] = max(access.limit, 1)
        items: list[Item] = []
        while True:
            answer = self.server.call(access.request, **request)
            items += [item for item in answer["Items"] if self._passes(item, all_values, flat)]
            is_enough = is_limited and items_needed is not None and len(items) >= items_needed
            if "LastEvaluatedKey" not in answer or is_enough:
                return items
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def _key_condition(
        self,
        expression: _Expression,
        condition: AccessCondition,
        named_values: Mapping[str, AttributeValue],
    ) -> str | None:
        """Returns a key condition.

        None for a range that ends before it begins, which DynamoDB refuses; empty for one that
        includes all keys.
        """
        attribute = self._attribute(condition.attribute)
        if condition.comparison == "between":
            ends = [
                self._operand(attribute, part, named_values)
                for part in condition.value.split(" and ")
            ]
            if order(ends[0]) > order(ends[-1]):
                return None
            name = expression.name(condition.attribute)
            if ends[0] == {"S": ""}:
                return f"{name} <= {expression.value(ends[-1])}"
            first, last = map(expression.value, ends)
            return f"{name} BETWEEN {first} AND {last}"
        form = _KEY_OPERATORS.get(condition.comparison)
        if form is None:
            raise RequestNotPossible(
                f"{condition.comparison} is not a comparison that a key condition can make"
            )
        operand = self._operand(attribute, condition.value, named_values)
        if operand in ({"S": ""}, {"B": ""}):
            # Every key sorts after the empty one, with which DynamoDB refuses to compare.
            return "" if condition.comparison in _LOW else None
        return form.format(expression.name(condition.attribute), expression.value(operand))

    # Tests after reading.

    def _filter(
        self,
        expression: _Expression,
        condition: AccessCondition,
        all_values: NamedValues,
        flat: Mapping[str, AttributeValue],
    ) -> str:
        name = expression.name(condition.attribute)
        if condition.comparison == "exists":
            return f"attribute_exists({name})"
        if condition.comparison == "not_exists":
            return f"attribute_not_exists({name})"
        values = [expression.value(value) for value in self._operands(condition, all_values, flat)]
        if condition.comparison == "between":
            return f"{name} BETWEEN {values[0]} AND {values[1]}"
        if condition.comparison == "in":
            return f"{name} IN ({', '.join(values)})"
        if condition.comparison == "not in":
            # In SQL, NULL is neither IN a list nor NOT IN one.
            return f"(attribute_exists({name}) AND NOT {name} IN ({', '.join(values)}))"
        if condition.comparison == "<>":
            return f"(attribute_exists({name}) AND {name} <> {values[0]})"
        if condition.comparison == "begins_with":
            return f"begins_with({name}, {values[0]})"
        return f"{name} {condition.comparison} {values[0]}"

    def _is_reversed(
        self,
        condition: AccessCondition,
        all_values: NamedValues,
        flat: Mapping[str, AttributeValue],
    ) -> bool:
        """True for a range that ends before it begins, which DynamoDB refuses to test."""
        if condition.comparison != "between":
            return False
        first, last = self._operands(condition, all_values, flat)
        return order(first) > order(last)

    def _operands(
        self,
        condition: AccessCondition,
        all_values: NamedValues,
        flat: Mapping[str, AttributeValue],
    ) -> list[AttributeValue]:
        attribute = self._attribute(condition.attribute)
        if condition.comparison in ("in", "not in"):
            # NULL in a list matches nothing.
            texts = [
                text
                for text in condition.value.split(" or ")
                if not any(part.name in self._nulls for part in template_fields(text))
            ]
        else:
            texts = (
                condition.value.split(" and ")
                if condition.comparison == "between"
                else [condition.value]
            )
        return [self._operand(attribute, text, flat) for text in texts]

    def _passes(
        self, item: Item, all_values: NamedValues, flat: Mapping[str, AttributeValue]
    ) -> bool:
        """Applies the conditions that the application tests itself."""
        return all(
            self._holds(
                condition,
                item.get(condition.attribute),
                self._operands(condition, all_values, flat),
            )
            for condition in self.access.tested
        )

    def _holds(
        self,
        condition: AccessCondition,
        value: AttributeValue | None,
        operands: list[AttributeValue],
    ) -> bool:
        if value is None:
            return False
        fold = self._fold(condition.attribute)
        if condition.comparison == "begins_with":
            return is_beginning(plain_text(operands[0]), plain_text(value), fold)
        current, *bounds = (comparable(each, fold) for each in (value, *operands))
        comparisons = {
            "=": lambda: current == bounds[0],
            "<>": lambda: current != bounds[0],
            "<": lambda: current < bounds[0],
            "<=": lambda: current <= bounds[0],
            ">": lambda: current > bounds[0],
            ">=": lambda: current >= bounds[0],
            "between": lambda: bounds[0] <= current <= bounds[-1],
            "in": lambda: current in bounds,
            "not in": lambda: current not in bounds,
        }
        return bool(comparisons[condition.comparison]())

    def _fold(self, name: str) -> str:
        attribute = self.entity.attribute(name)
        column = self._column(attribute)
        return fold_of(column, self.inventory.dialect) if column is not None else ""

    def _column(self, attribute: ItemAttribute | None) -> SourceColumn | None:
        if attribute is None or not attribute.column:
            return None
        return self.columns.get(ColumnRef.parse(attribute.column))

    def _compared(self, left: Item, right: Item) -> int:
        """Compares items in the order of `sorts`; NULL comes first, on PostgreSQL last."""
        for text in self.access.sorts:
            name = text.removesuffix(" desc")
            sign = -1 if text.endswith(" desc") else 1
            value, other_value = left.get(name), right.get(name)
            if value is None or other_value is None:
                if (value is None) == (other_value is None):
                    continue
                before = nulls_before(self.inventory.dialect)
                return sign * (before if value is None else -before)
            fold = self._fold(name)
            ours, theirs = comparable(value, fold), comparable(other_value, fold)
            if ours != theirs:
                return sign * (-1 if ours < theirs else 1)
        return 0


def _part_text(part: TemplateField, value: AttributeValue) -> str:
    """Returns the text of a template field; the ends of a range may lie beyond what a key can
    hold."""
    end = _END.search(part.name)
    if end is None:
        return field_text(part.format, value)
    text = bound_text(part.format, value, is_high=end[1] == "to")
    if text is None:
        raise NotEncodable("Nothing is within the range.")
    return text


class _Expression:
    """The attribute names and values of one request's expressions."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, AttributeValue] = {}

    def name(self, attribute: str) -> str:
        placeholder = next(
            (
                known_placeholder
                for known_placeholder, known_attribute in self.names.items()
                if known_attribute == attribute
            ),
            None,
        )
        if placeholder is None:
            placeholder = f"#n{len(self.names)}"
            self.names[placeholder] = attribute
        return placeholder

    def value(self, value: AttributeValue) -> str:
        name = f":v{len(self.values)}"
        self.values[name] = value
        return name
