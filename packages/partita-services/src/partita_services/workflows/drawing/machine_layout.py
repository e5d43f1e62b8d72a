"""The layout of a drawing: positions and sizes, in the units of the output format."""

from __future__ import annotations

from dataclasses import dataclass, field

from partita_services.workflows.drawing.layered_graph import GraphNode, MachineGraph, graph
from partita_services.workflows.language import States

PASSES = 6


@dataclass(frozen=True, slots=True)
class DrawingUnits:
    """The sizes of characters, of paddings, of gaps between boxes, and of lanes between rows."""

    char: float
    line: float
    pad_x: float
    pad_y: float
    gap: float
    lane: float


@dataclass(slots=True, eq=False)
class StateBox:
    """A state, or the place where an edge passes through a row."""

    node: GraphNode
    width: float
    height: float
    lines: list[str]
    inner: list[MachineLayout]
    x: float = 0.0
    y: float = 0.0

    @property
    def middle(self) -> float:
        return self.x + self.width // 2


@dataclass(slots=True)
class EdgeRoute:
    """An edge: from the bottom of a box, across in a lane, to the top of a box in the row below."""

    source: StateBox
    target: StateBox
    lane_y: float = 0.0


@dataclass(slots=True)
class MachineLayout:
    boxes: list[StateBox] = field(default_factory=list)
    routes: list[EdgeRoute] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0


def lay_out(states: States, units: DrawingUnits) -> MachineLayout:
    layers: MachineGraph = graph(states)
    boxes = {id(node): _box(node, units) for row in layers.rows for node in row}
    rows = [[boxes[id(node)] for node in row] for row in layers.rows]
    _place_across(rows, boxes, units)
    layout = MachineLayout([box for row in rows for box in row])
    y = 0.0
    has_texts = [any(box.node.text for box in row) for row in rows]
    for row, has_text, has_next_text in zip(rows, has_texts, [*has_texts[1:], True], strict=True):
        # A row without labels has no height: lines pass straight through it.
        height = max(box.height for box in row) if has_text else 0.0
        for box in row:
            box.y = y
            if box.node.is_between:
                # Its line spans the height of the row.
                box.height = height
        routes = [EdgeRoute(box, boxes[id(below)]) for box in row for below in box.node.below]
        lanes = _set_lanes(routes, y + height, units)
        layout.routes += routes
        y += height + (lanes + 1 if has_next_text else lanes) * units.lane
    layout.height = max(box.y + box.height for box in layout.boxes)
    layout.width = max(box.x + box.width for box in layout.boxes)
    return layout


def _box(node: GraphNode, units: DrawingUnits) -> StateBox:
    if node.is_between:
        return StateBox(node, (len(node.text) + 2) * units.char, units.line, [node.text], [])
    lines = [node.text, *([node.state.type] if node.state else []), *node.notes]
    inner = [lay_out(branch, units) for branch in (node.state.branches if node.state else ())]
    width = max(map(len, lines)) * units.char
    inner_width = sum(branch.width for branch in inner) + units.gap * max(0, len(inner) - 1)
    height = len(lines) * units.line + 2 * units.pad_y
    if inner:
        height += max(branch.height for branch in inner) + units.pad_y
    return StateBox(node, max(width, inner_width) + 2 * units.pad_x, height, lines, inner)


def _place_across(
    rows: list[list[StateBox]], boxes: dict[int, StateBox], units: DrawingUnits
) -> None:
    """Place boxes side by side, each as near as possible to the middle of its neighbors above or
    below."""
    for row in rows:
        x = 0.0
        for box in row:
            box.x = x
            x += box.width + units.gap
    for number in range(PASSES):
        is_down = number % 2 == 0
        for row in rows if is_down else reversed(rows):
            targets = []
            for box in row:
                others = box.node.above if is_down else box.node.below
                middles = [boxes[id(other)].middle for other in others]
                targets.append(sum(middles) / len(middles) if middles else box.middle)
            _settle(row, targets, units.gap)
    left = min(box.x for row in rows for box in row)
    for row in rows:
        for box in row:
            box.x = float(round(box.x - left))
    for row in rows[1:]:
        _straighten(row, boxes, units)


def _settle(row: list[StateBox], targets: list[float], gap: float) -> None:
    """Place boxes from the left, pushed to the right where they would overlap; then shift all of
    them back."""
    x = float("-inf")
    for box, middle in zip(row, targets, strict=True):
        box.x = max(middle - box.width // 2, x)
        x = box.x + box.width + gap
    pushed = [box.middle - middle for box, middle in zip(row, targets, strict=True)]
    back = sum(pushed) / len(pushed)
    for box in row:
        box.x -= back


def _straighten(row: list[StateBox], boxes: dict[int, StateBox], units: DrawingUnits) -> None:
    """Move boxes slightly where that makes an edge straight."""
    for place, box in enumerate(row):
        left = row[place - 1].x + row[place - 1].width if place else 0.0
        right = row[place + 1].x if place + 1 < len(row) else float("inf")
        for other in (*box.node.above, *box.node.below):
            x = box.x + boxes[id(other)].middle - box.middle
            if abs(x - box.x) <= 2 * units.char and left <= x and x + box.width <= right:
                box.x = x
                break


def _set_lanes(routes: list[EdgeRoute], top: float, units: DrawingUnits) -> int:
    """Give each route a lane, so that routes do not overlap. Returns the number of lanes."""
    lanes: list[list[tuple[float, float, StateBox]]] = []
    across = [route for route in routes if route.source.middle != route.target.middle]
    for route in sorted(across, key=lambda route: abs(route.source.middle - route.target.middle)):
        left, right = sorted((route.source.middle, route.target.middle))
        # Routes that end at the same box may share their last part.
        free = (
            number
            for number, lane in enumerate(lanes)
            if all(
                right < start or end < left or route.target is target for start, end, target in lane
            )
        )
        number = next(free, len(lanes))
        if number == len(lanes):
            lanes.append([])
        lanes[number].append((left, right, route.target))
        route.lane_y = top + (number + 1) * units.lane
    for route in routes:
        route.lane_y = route.lane_y or top
    return len(lanes)
