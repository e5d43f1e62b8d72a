"""Projections return the right parts of an item."""

from __future__ import annotations

import pytest

from partita.database.expressions.projection import compile_projection
from partita.database.item.attribute_values import Item

ITEM: Item = {
    "a": {"S": "x"},
    "l": {"L": [{"M": {"a": {"N": "0"}, "b": {"N": "00"}}}, {"N": "1"}, {"N": "2"}]},
    "m": {"M": {"x": {"S": "y"}, "n": {"M": {"p": {"N": "1"}, "q": {"N": "2"}}}}},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", {"a": {"S": "x"}}),
        ("a, nothing", {"a": {"S": "x"}}),
        ("nothing", {}),
        ("m.x", {"m": {"M": {"x": {"S": "y"}}}}),
        ("m.nothing", {}),
        ("m.n.p, m.x", {"m": {"M": {"n": {"M": {"p": {"N": "1"}}}, "x": {"S": "y"}}}}),
        ("l[2], l[1]", {"l": {"L": [{"N": "1"}, {"N": "2"}]}}),
        ("l[9]", {}),
        ("l[0].b, l[0].a, l[2]", {"l": {"L": [ITEM["l"]["L"][0], {"N": "2"}]}}),
        ("l[1].a, l[2]", {"l": {"L": [{"N": "2"}]}}),
        ("a.b", {}),
        ("m[0]", {}),
        ("l.x", {}),
    ],
)
def test_a_projection_shows_what_its_paths_lead_to(text: str, expected: Item) -> None:
    assert compile_projection(text, {}).project(ITEM) == expected


def test_a_projection_tells_what_it_uses() -> None:
    projection = compile_projection("#a.b[0], c", {"#a": "x", "#b": "y"})
    assert projection.paths == (("x", "b", 0), ("c",))
    assert projection.names_used == {"#a"}
