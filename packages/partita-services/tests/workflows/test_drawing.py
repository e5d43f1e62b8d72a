"""Drawings of machines: everything is on them once, and nothing lies on anything else."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita_services.workflows.drawing import mermaid, svg, text
from partita_services.workflows.drawing.machine_layout import DrawingUnits, MachineLayout, lay_out
from partita_services.workflows.language import StateMachine, States, parse

from .conftest import Json

UNITS = DrawingUnits(char=1, line=1, pad_x=2, pad_y=1, gap=3, lane=1)

BRANCHES = [
    {"StartAt": "Left", "States": {"Left": {"Type": "Pass", "End": True}}},
    {"StartAt": "Right", "States": {"Right": {"Type": "Succeed"}}},
]
MACHINE: Json = {
    "StartAt": "Check",
    "States": {
        "Check": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.n", "NumericGreaterThan": 3, "Next": "Both"}],
            "Default": "Pause",
        },
        "Pause": {"Type": "Wait", "Seconds": 1, "Next": "Check"},
        "Both": {
            "Type": "Parallel",
            "Branches": BRANCHES,
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Sorry"}],
            "End": True,
        },
        "Sorry": {"Type": "Fail"},
    },
}


def test_a_drawing_in_characters() -> None:
    assert [line.rstrip() for line in text(parse(MACHINE)).splitlines()] == DRAWN.splitlines()


DRAWN = """\
                      ┌───────┐
                      │ Start │
                      └───┬───┘
                          │
                     ┌────▼───┐
                     │ Check  │
                     │ Choice │
                     └────┬───┘
                          │
               ┌──────────┤
               │          └──────────┐
           choice 1               default
               │                     │
  ┌────────────▼────────────┐   ┌────▼────┐
  │           Both          │   │  Pause  │
  │         Parallel        │   │   Wait  │
  │ ┌───────┐    ┌───────┐  │   │ ↑ Check │
  │ │ Start │    │ Start │  │   └─────────┘
  │ └───┬───┘    └───┬───┘  │
  │     │            │      │
  │ ┌───▼──┐    ┌────▼────┐ │
  │ │ Left │    │  Right  │ │
  │ │ Pass │    │ Succeed │ │
  │ └───┬──┘    └─────────┘ │
  │     │                   │
  │  ┌──▼──┐                │
  │  │ End │                │
  │  └─────┘                │
  │                         │
  └────────────┬────────────┘
               │
         ┌─────┤
         │     └──────┐
 catch States.ALL     │
         │            │
     ┌───▼───┐     ┌──▼──┐
     │ Sorry │     │ End │
     │  Fail │     └─────┘
     └───────┘
"""


def test_an_svg_is_xml_with_every_name_on_it() -> None:
    drawn = svg(parse(named("a < b & \"c\" 'd'")))
    texts = [element.text for element in ElementTree.fromstring(drawn).iter() if element.text]
    assert "a < b & \"c\" 'd'" in texts


def test_mermaid_names_states_and_ways() -> None:
    drawn = mermaid(parse(MACHINE))
    assert drawn.startswith("flowchart TD\n")
    for words in ('"Check"', "subgraph", '-- "catch States.ALL" -->', "((Start))", "((End))"):
        assert words in drawn
    assert "&quot;" in mermaid(parse(named('"quoted"')))


def named(name: str) -> Json:
    return {"StartAt": name, "States": {name: {"Type": "Pass", "End": True}}}


@st.composite
def machines(draw: Any, level: int = 1, prefix: str = "") -> Json:
    """Machines of all shapes: ways forwards and back, branches in branches."""
    count = draw(st.integers(1, 6))
    names = [f"{prefix}{'x' * draw(st.integers(0, 6))}{number}" for number in range(count)]
    states: Json = {}
    for number, name in enumerate(names):
        following = names[number + 1] if number + 1 < count else None
        end: Json = {"Next": following} if following else {"End": True}
        kind = draw(st.sampled_from(["Pass", "Choice", "Parallel"]))
        if kind == "Choice":
            targets = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))
            rules = [{"Variable": "$.a", "IsPresent": True, "Next": one} for one in targets]
            default = following or names[0]
            states[name] = {"Type": "Choice", "Choices": rules, "Default": default}
        elif kind == "Parallel" and level:
            inner = [draw(machines(level - 1, f"{name}{letter}")) for letter in "ab"]
            states[name] = {"Type": "Parallel", "Branches": inner, **end}
        else:
            states[name] = {"Type": "Pass", **end}
    return {"StartAt": names[0], "States": states}


@settings(max_examples=25)
@given(machines())
def test_no_box_lies_on_another(definition: Json) -> None:
    machine = StateMachine(definition)
    check(lay_out(States(machine.start_at, machine.states), UNITS))
    drawn = text(machine)
    for name in reachable(machine):
        assert name in drawn
    ElementTree.fromstring(svg(machine))


def reachable(machine: StateMachine) -> set[str]:
    found: set[str] = set()
    waiting = [machine.start_at]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [target for _, target in machine.states[name].transitions()]
    return found


def check(layout: MachineLayout) -> None:
    boxes = [box for box in layout.boxes if box.node.text]
    for one, other in combinations(boxes, 2):
        is_beside = one.x + one.width <= other.x or other.x + other.width <= one.x
        is_below = one.y + one.height <= other.y or other.y + other.height <= one.y
        assert is_beside or is_below, f"{one.node.text} and {other.node.text}"
    for box in layout.boxes:
        assert box.x >= 0
        for inner in box.inner:
            assert inner.width + 2 * UNITS.pad_x <= box.width
            check(inner)


@pytest.mark.parametrize("count", [200])
def test_a_long_machine_is_drawn_at_once(count: int) -> None:
    states: Json = {f"S{n}": {"Type": "Pass", "Next": f"S{n + 1}"} for n in range(count)}
    states[f"S{count}"] = {"Type": "Succeed"}
    assert f"S{count}" in text(parse({"StartAt": "S0", "States": states}))
