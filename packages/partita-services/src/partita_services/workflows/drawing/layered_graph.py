"""The states of a machine as a layered graph that flows downwards: the edges, and the row of each
node.

States are on even rows. An edge passes through every row between its states, with a node of its own
in each; the first of these has the label that says when the edge is taken. Edges that lead back up
become notes at the state where they start, because upward lines make a drawing hard to read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from partita_services.workflows.language import State, States

START, END = "Start", "End"
SWEEPS = 4


@dataclass(slots=True, eq=False)
class GraphNode:
    text: str
    """The name of a state, or the label of an edge, which is often empty."""
    row: int
    state: State | None = None
    is_between: bool = False
    notes: list[str] = field(default_factory=list)
    above: list[GraphNode] = field(default_factory=list)
    below: list[GraphNode] = field(default_factory=list)


@dataclass(slots=True)
class MachineGraph:
    rows: list[list[GraphNode]]


def graph(states: States) -> MachineGraph:
    nodes = {name: GraphNode(name, 0, state) for name, state in states.states.items()}
    start, end = GraphNode(START, 0), GraphNode(END, 0)
    ways = [(start, nodes[states.start_at], "")]
    for node in nodes.values():
        assert node.state is not None
        ways += [(node, nodes[target], label) for label, target in node.state.transitions()]
        if node.state.fields.get("End"):
            ways.append((node, end, ""))
    down = _downwards(start, ways)
    _set_rows(start, down)
    last = max(source.row for source, _, _ in down) + 2
    end.row = max(end.row, last) if any(target is end for _, target, _ in down) else end.row
    used = {id(node): node for way in down for node in way[:2]}
    placed: list[GraphNode] = list(used.values())
    for source, target, label in down:
        placed += _connect(source, target, label)
    rows: list[list[GraphNode]] = [[] for _ in range(max(node.row for node in placed) + 1)]
    for node in placed:
        rows[node.row].append(node)
    for _ in range(SWEEPS):
        for upper, lower in pairwise(rows):
            _sort(lower, upper, "above")
        for lower, upper in pairwise(reversed(rows)):
            _sort(upper, lower, "below")
    for upper, lower in pairwise(rows):
        _sort(lower, upper, "above")
    return MachineGraph(rows)


Way = tuple[GraphNode, GraphNode, str]


def _downwards(start: GraphNode, ways: list[Way]) -> list[Way]:
    """All edges except those that lead back up, which become notes."""
    leaving: dict[int, list[Way]] = {}
    for way in ways:
        leaving.setdefault(id(way[0]), []).append(way)
    down: list[Way] = []
    done: set[int] = set()
    path: set[int] = {id(start)}
    waiting = [(start, iter(leaving.get(id(start), ())))]
    while waiting:
        node, rest = waiting[-1]
        following = next(rest, None)
        if following is None:
            waiting.pop()
            path.discard(id(node))
            done.add(id(node))
            continue
        _, target, label = following
        if id(target) in path:
            node.notes.append(f"↑ {target.text}" + (f" ({label})" if label else ""))
            continue
        down.append(following)
        if id(target) not in done:
            path.add(id(target))
            waiting.append((target, iter(leaving.get(id(target), ()))))
    return down


def _set_rows(start: GraphNode, down: list[Way]) -> None:
    """Put each state below everything that leads to it."""
    entering: dict[int, int] = {}
    for _, target, _ in down:
        entering[id(target)] = entering.get(id(target), 0) + 1
    ready = [start]
    while ready:
        node = ready.pop()
        for source, target, _ in down:
            if source is node:
                target.row = max(target.row, node.row + 2)
                entering[id(target)] -= 1
                if not entering[id(target)]:
                    ready.append(target)


def _connect(source: GraphNode, target: GraphNode, label: str) -> list[GraphNode]:
    between: list[GraphNode] = []
    above = source
    for row in range(source.row + 1, target.row):
        node = GraphNode(label if not between else "", row, is_between=True)
        between.append(node)
        _join(above, node)
        above = node
    _join(above, target)
    return between


def _join(above: GraphNode, below: GraphNode) -> None:
    above.below.append(below)
    below.above.append(above)


def _sort(row: list[GraphNode], neighbour: list[GraphNode], towards: str) -> None:
    """Sort a row by the mean position of the connected nodes in the next row, so that edges cross
    less."""
    places = {id(node): place for place, node in enumerate(neighbour)}
    own = {id(node): place for place, node in enumerate(row)}

    def mean(node: GraphNode) -> float:
        others: list[GraphNode] = getattr(node, towards)
        if not others:
            return own[id(node)]
        return sum(places[id(other)] for other in others) / len(others)

    row.sort(key=mean)
