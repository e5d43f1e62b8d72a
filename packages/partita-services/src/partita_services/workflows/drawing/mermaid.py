"""A drawing in Mermaid, which many document viewers show as a picture."""

from __future__ import annotations

from collections.abc import Iterator

from partita_services.workflows.language import State, StateMachine, States

SHAPES = {"Choice": '{{"{}"}}', "Wait": '(["{}"])', "Succeed": '(("{}"))', "Fail": '(("{}"))'}
PLAIN = '["{}"]'


def mermaid(machine: StateMachine) -> str:
    lines = ["flowchart TD"]
    lines += _states(States(machine.start_at, machine.states), "s", "    ")
    return "\n".join(lines) + "\n"


def _states(states: States, prefix: str, indent: str) -> Iterator[str]:
    ids = {name: f"{prefix}{number}" for number, name in enumerate(states.states)}
    for name, state in states.states.items():
        yield from _state(state, ids[name], indent)
    yield f"{indent}{prefix}start((Start)) --> {ids[states.start_at]}"
    for name, state in states.states.items():
        for label, target in state.transitions():
            arrow = f'-- "{_escaped(label)}" -->' if label else "-->"
            yield f"{indent}{ids[name]} {arrow} {ids[target]}"
        if state.fields.get("End"):
            yield f"{indent}{ids[name]} --> {prefix}end((End))"


def _state(state: State, id: str, indent: str) -> Iterator[str]:
    if not state.branches:
        shape = SHAPES.get(state.type, PLAIN).format(_escaped(state.name))
        yield f"{indent}{id}{shape}"
        return
    yield f'{indent}subgraph {id}["{_escaped(state.name)} ({state.type})"]'
    for number, branch in enumerate(state.branches):
        yield from _states(branch, f"{id}b{number}s", indent + "    ")
    yield f"{indent}end"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("\n", " ")
