"""A state machine: its states by name, and the states within states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from partita_services.workflows.language.json_values import Json

JSONPATH = "JSONPath"
JSONATA = "JSONata"


class State(NamedTuple):
    """A state of a definition; its query language is resolved."""

    name: str
    type: str
    fields: dict[str, Json]
    query_language: str
    branches: tuple[States, ...] = ()
    """The branches of a Parallel state, or the processor of a Map state."""

    @property
    def is_jsonata(self) -> bool:
        return self.query_language == JSONATA

    @property
    def next(self) -> str | None:
        following: str | None = self.fields.get("Next")
        return following

    def transitions(self) -> list[tuple[str, str]]:
        """The states that may follow, each with a label that says when."""
        transitions = [("", self.next)] if self.next else []
        for number, rule in enumerate(self.fields.get("Choices", ()), 1):
            transitions.append((f"choice {number}", rule["Next"]))
        if "Default" in self.fields:
            transitions.append(("default", self.fields["Default"]))
        for catcher in self.fields.get("Catch", ()):
            transitions.append((f"catch {', '.join(catcher['ErrorEquals'])}", catcher["Next"]))
        return transitions


class States(NamedTuple):
    """The states of a machine, of a branch, or of the processor of a Map state."""

    start_at: str
    states: dict[str, State]


class StateMachine:
    """A parsed definition, which has passed validation."""

    def __init__(self, definition: dict[str, Any]) -> None:
        self.definition = definition
        self.comment: str | None = definition.get("Comment")
        self.timeout_seconds: int | None = definition.get("TimeoutSeconds")
        self.query_language: str = definition.get("QueryLanguage", JSONPATH)
        self._top = _states(definition, self.query_language)

    @property
    def start_at(self) -> str:
        return self._top.start_at

    @property
    def states(self) -> dict[str, State]:
        return self._top.states

    def states_at(self, path: tuple[str | int, ...]) -> States:
        """The states of a branch. The path alternates names of states and numbers of branches:
        `("Map", 0)`."""
        states = self._top
        for name, number in zip(path[::2], path[1::2], strict=True):
            states = states.states[str(name)].branches[int(number)]
        return states

    def tasks(self) -> Iterator[tuple[str, str]]:
        """The resource of every Task, with its location in the definition."""
        yield from _tasks(self._top, "/States")


def processor_of(fields: dict[str, Json]) -> tuple[str, Json]:
    """The name of a Map state's processor field, and its value."""
    name = "ItemProcessor" if "ItemProcessor" in fields else "Iterator"
    return name, fields.get(name)


def _states(definition: dict[str, Json], query_language: str) -> States:
    states = {
        name: _state(name, fields, query_language) for name, fields in definition["States"].items()
    }
    return States(definition["StartAt"], states)


def _state(name: str, fields: dict[str, Json], query_language: str) -> State:
    # A branch has the query language of the machine, not that of the state around it.
    inner = fields.get("Branches", [])
    if fields["Type"] == "Map":
        # A Map state has one "branch", its processor, so that paths have the same shape for both.
        inner = [processor_of(fields)[1]]
    branches = tuple(_states(branch, query_language) for branch in inner)
    return State(
        name, fields["Type"], fields, fields.get("QueryLanguage", query_language), branches
    )


def _tasks(states: States, place: str) -> Iterator[tuple[str, str]]:
    for state in states.states.values():
        here = f"{place}/{state.name}"
        if state.type == "Task":
            yield f"{here}/Resource", state.fields["Resource"]
        for number, branch in enumerate(state.branches):
            if state.type == "Map":
                inner = processor_of(state.fields)[0]
            else:
                inner = f"Branches[{number}]"
            yield from _tasks(branch, f"{here}/{inner}/States")
