"""Compiled conditions agree with a plain evaluator, and nonsense is only ever refused."""

from __future__ import annotations

from base64 import b64decode
from contextlib import suppress
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from partita.database.expressions.condition import compile_condition
from partita.database.expressions.key_condition import compile_key_condition
from partita.database.expressions.projection import compile_projection
from partita.database.expressions.update import compile_update
from partita.database.item.attribute_values import AttributeValue, Item
from partita.errors import ValidationException

NAMES = ("a", "b", "c", "d")

scalars = st.one_of(
    st.sampled_from(["", "x", "xy", "é"]).map(lambda text: {"S": text}),
    st.sampled_from(["-1.5", "0", "2", "10"]).map(lambda text: {"N": text}),
    st.sampled_from(["", "AA==", "AP8="]).map(lambda text: {"B": text}),
)
attribute_values: st.SearchStrategy[AttributeValue] = st.one_of(
    scalars,
    st.booleans().map(lambda flag: {"BOOL": flag}),
    st.just({"NULL": True}),
    st.sampled_from([["x"], ["", "x"]]).map(lambda members: {"SS": members}),
    st.sampled_from([["0"], ["0", "2"]]).map(lambda members: {"NS": members}),
    st.lists(scalars, max_size=2).map(lambda members: {"L": members}),
)
items = st.dictionaries(st.sampled_from(NAMES), attribute_values)

Tree = tuple[Any, ...]

paths: st.SearchStrategy[Tree] = st.sampled_from(NAMES).map(lambda name: ("path", name))
operands: st.SearchStrategy[Tree] = st.one_of(paths, scalars.map(lambda value: ("value", value)))
tests: st.SearchStrategy[Tree] = st.one_of(
    st.tuples(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), paths, operands),
    st.tuples(st.just("IN"), paths, operands, operands),
    st.tuples(st.sampled_from(["attribute_exists", "attribute_not_exists"]), paths),
    st.tuples(st.just("contains"), paths, operands),
    st.tuples(st.just("size"), paths),
)
conditions: st.SearchStrategy[Tree] = st.recursive(
    tests,
    lambda inner: st.one_of(
        st.tuples(st.just("NOT"), inner),
        st.tuples(st.just("AND"), inner, inner),
        st.tuples(st.just("OR"), inner, inner),
    ),
    max_leaves=6,
)


class Writer:
    """Writes a tree as an expression, with a placeholder for each value."""

    def __init__(self) -> None:
        self.values: Item = {":size": {"N": "2"}}

    def write(self, tree: Tree) -> str:
        head, *rest = tree
        if head == "path":
            return str(rest[0])
        if head == "value":
            name = f":v{len(self.values)}"
            self.values[name] = rest[0]
            return name
        if head == "NOT":
            return f"NOT {self.group(rest[0])}"
        if head in ("AND", "OR"):
            return f"{self.group(rest[0])} {head} {self.group(rest[1])}"
        parts = [self.write(part) for part in rest]
        if head == "IN":
            return f"{parts[0]} IN ({', '.join(parts[1:])})"
        if head == "size":
            return f"size({parts[0]}) >= :size"
        if head in ("attribute_exists", "attribute_not_exists", "contains"):
            return f"{head}({', '.join(parts)})"
        return f"{parts[0]} {head} {parts[1]}"

    def group(self, tree: Tree) -> str:
        return f"({self.write(tree)})"


def sort_key(value: AttributeValue) -> Any:
    ((kind, content),) = value.items()
    return Decimal(content) if kind == "N" else content.encode() if kind == "S" else None


def raw(value: AttributeValue) -> bytes:
    return b64decode(value["B"])


def order(left: AttributeValue, right: AttributeValue) -> int | None:
    """-1, 0 or 1 for two values of one ordered type."""
    if left.keys() != right.keys() or not left.keys() & {"S", "N", "B"}:
        return None
    one, other = (raw(v) if "B" in v else sort_key(v) for v in (left, right))
    return int(one > other) - int(one < other)


def naive(tree: Tree, item: Item) -> bool:
    head, *rest = tree
    if head == "NOT":
        return not naive(rest[0], item)
    if head == "AND":
        return naive(rest[0], item) and naive(rest[1], item)
    if head == "OR":
        return naive(rest[0], item) or naive(rest[1], item)
    found = [item.get(part[1]) if part[0] == "path" else part[1] for part in rest]
    if head == "attribute_exists":
        return found[0] is not None
    if head == "attribute_not_exists":
        return found[0] is None
    if head == "<>":
        return not naive(("=", *rest), item)
    if found[0] is None:
        return False
    if head == "size":
        return naive_size(found[0]) >= 2
    if head == "contains":
        return found[1] is not None and naive_contains(found[0], found[1])
    if head == "IN":
        return any(found[0] == candidate for candidate in found[1:])
    if head == "=":
        return bool(found[0] == found[1])
    compared = None if found[1] is None else order(found[0], found[1])
    if compared is None:
        return False
    return {"<": compared < 0, "<=": compared <= 0, ">": compared > 0, ">=": compared >= 0}[head]


def naive_size(value: AttributeValue) -> int:
    ((kind, content),) = value.items()
    if kind in ("N", "BOOL", "NULL"):
        return -1
    return len(raw(value)) if kind == "B" else len(content)


def naive_contains(container: AttributeValue, member: AttributeValue) -> bool:
    ((kind, content),) = container.items()
    ((member_kind, member_content),) = member.items()
    if kind == "L":
        return any(element == member for element in content)
    if kind in ("SS", "NS", "BS"):
        return kind[0] == member_kind and member_content in set(content)
    if kind == member_kind == "B":
        return raw(member) in raw(container)
    return kind == member_kind == "S" and member_content in content


@settings(max_examples=400, deadline=None)
@given(conditions, items)
def test_compiled_conditions_agree_with_a_plain_evaluator(tree: Tree, item: Item) -> None:
    writer = Writer()
    text = writer.write(tree)
    try:
        condition = compile_condition(text, {})
        condition.check(writer.values)
    except ValidationException as refusal:
        # The only thing wrong that these trees can have.
        assert refusal.message and "must be distinct" in refusal.message
        return
    assert condition.holds(item, writer.values) is naive(tree, item)


SOUP = (
    *("a", "b.c", "l[0]", "#n", "#undefined", ":v", ":s", ":set", ":list", ":undefined", "status"),
    *("(", ")", "(", ")", "[", "]", ".", ",", "=", "<>", "<", ">=", "+", "-", "0", "99999999999"),
    *("AND", "OR", "NOT", "BETWEEN", "IN", "SET", "REMOVE", "ADD", "DELETE"),
    *("size(", "contains(", "attribute_type(", "if_not_exists(", "list_append(", "nope("),
    *("!", "ü", "\U0001f600", "\n", "'", "_", "\x00"),
)
SOUP_VALUES: Item = {
    ":v": {"N": "1"},
    ":s": {"S": "x"},
    ":set": {"SS": ["x"]},
    ":list": {"L": []},
}
SOUP_ITEM: Item = {"a": {"N": "1"}, "b": {"M": {"c": {"S": "x"}}}, "l": {"L": [{"N": "1"}]}}
soup = st.lists(st.sampled_from(SOUP), max_size=12).map(" ".join)
update_soup = st.one_of(soup, soup.map("SET a = {}".format), soup.map("ADD a :v REMOVE {}".format))


@settings(max_examples=500, deadline=None)
@given(soup, update_soup)
def test_token_soup_is_refused_and_nothing_else(text: str, update_text: str) -> None:
    names = {"#n": "n"}
    with suppress(ValidationException):
        condition = compile_condition(text, names)
        condition.check(SOUP_VALUES)
        condition.holds(SOUP_ITEM, SOUP_VALUES)
    with suppress(ValidationException):
        compile_projection(text, names).project(SOUP_ITEM)
    with suppress(ValidationException):
        key_condition = compile_key_condition(text, names)
        key_condition.check(SOUP_VALUES)
        key_condition.resolve([], [], SOUP_VALUES)
    with suppress(ValidationException):
        update = compile_update(update_text, names)
        update.check(SOUP_VALUES)
        update.touched(update.apply(SOUP_ITEM, SOUP_VALUES))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_an_expression_or_is_refused(text: str) -> None:
    for compiled in (compile_condition, compile_projection, compile_update, compile_key_condition):
        with suppress(ValidationException):
            compiled(text, {})
