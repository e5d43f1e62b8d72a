"""A state machine as its definition has it: states by name, and the states within states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from partita.workflows.language.values import Json

JSONPATH = "JSONPath"
JSONATA = "JSONata"


class State(NamedTuple):
    name: str
    type: str
    fields: dict[str, Json]
    query_language: str
    branches: tuple[States, ...] = ()
    """Of a Parallel state each branch, of a Map state what it does with each item."""

    @property
    def is_jsonata(self) -> bool:
        return self.query_language == JSONATA

    @property
    def next(self) -> str | None:
        following: str | None = self.fields.get("Next")
        return following

    def transitions(self) -> list[tuple[str, str]]:
        """Where it may go, each with a word that says when."""
        found = [("", self.next)] if self.next else []
        for number, rule in enumerate(self.fields.get("Choices", ()), 1):
            found.append((f"choice {number}", rule["Next"]))
        if "Default" in self.fields:
            found.append(("default", self.fields["Default"]))
        for catcher in self.fields.get("Catch", ()):
            found.append((f"catch {', '.join(catcher['ErrorEquals'])}", catcher["Next"]))
        return found


class States(NamedTuple):
    """States that belong together: of a machine, a branch, or the processor of a Map."""

    start_at: str
    states: dict[str, State]


class StateMachine:
    """A definition that was found valid."""

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
        """The states of a branch: the path has a state's name and a branch's number in turn."""
        found = self._top
        for name, number in zip(path[::2], path[1::2], strict=True):
            found = found.states[str(name)].branches[int(number)]
        return found

    def tasks(self) -> Iterator[tuple[str, str]]:
        """The resource of every Task, with its place in the definition."""
        yield from _tasks(self._top, "/States")


def processor_of(fields: dict[str, Json]) -> tuple[str, Json]:
    """What a Map state does with each item, and the name of the field that says so."""
    name = "ItemProcessor" if "ItemProcessor" in fields else "Iterator"
    return name, fields.get(name)


def _states(definition: dict[str, Json], query_language: str) -> States:
    states = {
        name: _state(name, fields, query_language) for name, fields in definition["States"].items()
    }
    return States(definition["StartAt"], states)


def _state(name: str, fields: dict[str, Json], query_language: str) -> State:
    # A branch has the query language of the machine, whatever that of the state around it is.
    inner = fields.get("Branches", [])
    if fields["Type"] == "Map":
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
