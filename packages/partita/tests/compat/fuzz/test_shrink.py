"""A difference is shown by the smallest request and the fewest items."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ..answers import Answer
from ..notation import N, S
from .kinds import kind
from .requests import Request
from .shrink import Shrinking
from .twins import Exchange, State, Twins

SAME = Answer(200, {})
OTHER = Answer(400, {}, "ValidationException", "not alike")


class FakeTwins(Twins):
    """Two servers that differ only for certain items and a certain request."""

    def __init__(self, differ: Callable[[State, Request], bool]) -> None:
        self._differ = differ
        self._state: State = {}

    def reset(self, state: State) -> None:
        self._state = state

    def ask(self, request: Request) -> Exchange:
        answer = OTHER if self._differ(self._state, request) else SAME
        return Exchange(request, SAME, answer, {}, {})


def shrunk(
    differ: Callable[[State, Request], bool], state: State, request: Request
) -> tuple[State, Request]:
    twins = FakeTwins(differ)
    wanted = kind(Exchange(request, SAME, OTHER, {}, {}))
    found = Shrinking(twins, wanted, lambda exchange: True).shrunk(state, request)
    assert found is not None
    return found[0], found[1].request


STATE: State = {"T": [{"pk": S("a"), "n": N("1"), "s": S("x")}, {"pk": S("b"), "n": N("2")}]}


def test_only_the_item_and_the_attribute_that_matter_are_left() -> None:
    def differ(state: State, request: Request) -> bool:
        return any("n" in item for item in state.get("T", ()))

    state, _ = shrunk(differ, STATE, Request("Scan", {"TableName": "T"}))
    assert state == {"T": [{"pk": S("b"), "n": N("2")}]}


def test_only_the_words_and_the_placeholders_that_matter_are_left() -> None:
    body = {
        "TableName": "T",
        "FilterExpression": "a = :a AND size(#b) > :c OR d = :a",
        "ExpressionAttributeNames": {"#b": "b"},
        "ExpressionAttributeValues": {":a": N("1"), ":c": N("2")},
        "Limit": 3,
    }

    def differ(state: State, request: Request) -> bool:
        names = request.body.get("ExpressionAttributeNames", {})
        return "#b" in names and "size(#b)" in request.body.get("FilterExpression", "")

    _, request = shrunk(differ, {}, Request("Scan", body))
    assert request.body == {
        "FilterExpression": "size(#b)",
        "ExpressionAttributeNames": {"#b": "b"},
    }


def test_what_the_items_alone_do_not_show_is_not_shrunk() -> None:
    twins = FakeTwins(lambda state, request: False)
    shrinking = Shrinking(twins, "any kind", lambda exchange: True)
    assert shrinking.shrunk(STATE, Request("Scan", {"TableName": "T"})) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("operands: 3; value: :v1", "operands: 14; value: :v20"),
        ("not defined; attribute name: #n0", "not defined; attribute name: #n3"),
        ("index byN does not project [a, b]", "index localS does not project [c]"),
    ],
)
def test_differences_that_only_name_other_things_are_of_one_kind(one: str, other: str) -> None:
    kinds = {
        kind(Exchange(Request("Scan", {}), SAME, Answer(400, {}, "E", text), {}, {}))
        for text in (one, other)
    }
    assert len(kinds) == 1
