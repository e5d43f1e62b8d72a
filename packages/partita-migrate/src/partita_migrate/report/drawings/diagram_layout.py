"""Lays out boxes without overlaps, and routes the lines between them. The result is always the
same.

This is a layered layout after Sugiyama. Each group of connected boxes is drawn in columns, with
parents to the left of their children. A line that passes a column gets a place of its own in it.
Boxes are ordered so that few lines cross, and then moved as close to their neighbors as that order
allows. Finally the groups are placed next to each other, like words in lines.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

COLUMN_GAP = 84
BOX_GAP = 26
PASS_HEIGHT = 4
GROUP_GAP = 44
SWEEPS = 12
COLUMN_HEIGHT_MIN = 720
WIDTH_MIN = 1080
PASSES_MAX = 3000
"""Beyond this number, lines are drawn straight, through whatever is in their way."""


class DiagramBox(NamedTuple):
    name: str
    width: float
    height: float


class DiagramLine(NamedTuple):
    """A line from a parent box to a child box. Ports are the heights inside the boxes where it
    ends."""

    parent: str
    child: str
    parent_port: float
    child_port: float


class DiagramPoint(NamedTuple):
    x: float
    y: float

    def moved(self, x: float, y: float) -> DiagramPoint:
        return DiagramPoint(self.x + x, self.y + y)


class DiagramLayout(NamedTuple):
    width: float
    height: float
    places: dict[str, DiagramPoint]
    """The upper left corner of each box."""
    routes: list[list[DiagramPoint]]
    """The points of each line, from the parent to the child."""


def lay_out(boxes: Sequence[DiagramBox], lines: Sequence[DiagramLine]) -> DiagramLayout:
    """Lays out the boxes. A line from a box to itself is not routed and gets no points."""
    groups = _groups(boxes, lines)
    laid = [_Group(members, [lines[n] for n in numbers], numbers) for members, numbers in groups]
    area = sum((group.width + GROUP_GAP) * (group.height + GROUP_GAP) for group in laid)
    # 1.7 makes the whole drawing about as wide as a page is against its height.
    width_max = max([WIDTH_MIN, math.sqrt(area * 1.7), *(group.width for group in laid)])
    places: dict[str, DiagramPoint] = {}
    routes: list[list[DiagramPoint]] = [[] for _ in lines]
    x = y = row_height = width = 0.0
    for group in sorted(laid, key=lambda group: -group.height):
        if x and x + group.width > width_max:
            x, y, row_height = 0.0, y + row_height + GROUP_GAP, 0.0
        places |= {name: place.moved(x, y) for name, place in group.places.items()}
        for number, route in group.routes.items():
            routes[number] = [point.moved(x, y) for point in route]
        width, row_height = max(width, x + group.width), max(row_height, group.height)
        x += group.width + GROUP_GAP
    return DiagramLayout(width, y + row_height, places, routes)


def _groups(
    boxes: Sequence[DiagramBox], lines: Sequence[DiagramLine]
) -> list[tuple[list[DiagramBox], list[int]]]:
    """Returns connected boxes with the numbers of their lines, the largest group first."""
    # Union-find: boxes that lines connect end up with the same leader.
    leader = {box.name: box.name for box in boxes}

    def find(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    for line in lines:
        leader[find(line.child)] = find(line.parent)
    members: dict[str, list[DiagramBox]] = defaultdict(list)
    numbers: dict[str, list[int]] = defaultdict(list)
    for box in boxes:
        members[find(box.name)].append(box)
    for number, line in enumerate(lines):
        numbers[find(line.parent)].append(number)
    groups = [(group, numbers[name]) for name, group in members.items()]
    return sorted(groups, key=lambda group: -len(group[0]))


class _Group:
    """One connected group. Boxes and the places of passing lines are numbered by `heights`."""

    def __init__(
        self, boxes: list[DiagramBox], lines: list[DiagramLine], numbers: list[int]
    ) -> None:
        self.boxes = boxes
        self.number = {box.name: n for n, box in enumerate(boxes)}
        self.heights = [box.height for box in boxes]
        self.lines = [
            (number, line, self.number[line.parent], self.number[line.child])
            for number, line in zip(numbers, lines, strict=True)
            if line.parent != line.child
        ]
        self.columns = self._columns()
        self.near: dict[int, list[int]] = defaultdict(list)
        self.passes = [self._pass(parent, child) for _, _, parent, child in self.lines]
        self._order()
        self.tops = self._tops()
        self._measure()

    # Columns.

    def _columns(self) -> list[list[int]]:
        ranks = self._ranks()
        by_rank: dict[int, list[int]] = defaultdict(list)
        for box, rank in enumerate(ranks):
            by_rank[rank].append(box)
        area = sum(box.width * (box.height + BOX_GAP) for box in self.boxes)
        height_max = max(COLUMN_HEIGHT_MIN, math.sqrt(area))
        columns: list[list[int]] = []
        for rank in sorted(by_rank):
            columns += self._split(by_rank[rank], height_max)
        return columns

    def _ranks(self) -> list[int]:
        """Returns each box's distance from boxes without parents. Cycles are cut."""
        children: dict[int, list[int]] = defaultdict(list)
        for _, _, parent, child in self.lines:
            if not self._reaches(children, child, parent):
                children[parent].append(child)
        ranks = [0] * len(self.boxes)
        for box in self._from_parents(children):
            for child in children[box]:
                ranks[child] = max(ranks[child], ranks[box] + 1)
        # A box without parents moves as close as possible to its children.
        with_parents = {child for each in children.values() for child in each}
        for box in range(len(self.boxes)):
            if box not in with_parents and children[box]:
                ranks[box] = min(ranks[child] for child in children[box]) - 1
        return ranks

    def _reaches(self, children: dict[int, list[int]], start: int, end: int) -> bool:
        visited, waiting = {start}, [start]
        while waiting:
            box = waiting.pop()
            if box == end:
                return True
            fresh = [child for child in children[box] if child not in visited]
            visited.update(fresh)
            waiting += fresh
        return False

    def _from_parents(self, children: dict[int, list[int]]) -> list[int]:
        waited = [0] * len(self.boxes)
        for each in list(children.values()):
            for child in each:
                waited[child] += 1
        ordered = [box for box, count in enumerate(waited) if not count]
        for box in ordered:
            for child in children[box]:
                waited[child] -= 1
                if not waited[child]:
                    ordered.append(child)
        return ordered

    def _split(self, boxes: list[int], height_max: float) -> list[list[int]]:
        """Splits a layer into columns of about equal height, none of them too high."""
        total = sum(self.heights[box] + BOX_GAP for box in boxes)
        limit = total / math.ceil(total / height_max)
        columns: list[list[int]] = [[]]
        height = 0.0
        for box in boxes:
            if columns[-1] and height + self.heights[box] / 2 > limit:
                columns.append([])
                height = 0.0
            columns[-1].append(box)
            height += self.heights[box] + BOX_GAP
        return columns

    def _pass(self, parent: int, child: int) -> list[int]:
        """Returns the line's places in the columns between its ends, from left to right."""
        column = {box: n for n, boxes in enumerate(self.columns) for box in boxes}
        first, last = sorted((parent, child), key=lambda box: column[box])
        chain = [first]
        if len(self.heights) < PASSES_MAX:
            for n in range(column[first] + 1, column[last]):
                chain.append(len(self.heights))
                self.heights.append(PASS_HEIGHT)
                self.columns[n].append(chain[-1])
        chain.append(last)
        for left, right in pairwise(chain):
            self.near[left].append(right)
            self.near[right].append(left)
        return chain

    # Order within the columns, and heights.

    def _order(self) -> None:
        for sweep in range(SWEEPS):
            position = {
                box: place / max(1, len(boxes) - 1)
                for boxes in self.columns
                for place, box in enumerate(boxes)
            }
            for boxes in self.columns if sweep % 2 else self.columns[::-1]:
                boxes.sort(key=lambda box: _mean(position, self.near[box], position[box]))
                for place, box in enumerate(boxes):
                    position[box] = place / max(1, len(boxes) - 1)

    def _tops(self) -> dict[int, float]:
        tops: dict[int, float] = {}
        for boxes in self.columns:
            tops |= self._stacked(boxes, [0.0] * len(boxes))
        for sweep in range(SWEEPS):
            for boxes in self.columns if sweep % 2 else self.columns[::-1]:
                middles = {box: top + self.heights[box] / 2 for box, top in tops.items()}
                desired = [
                    _mean(middles, self.near[box], middles[box]) - self.heights[box] / 2
                    for box in boxes
                ]
                tops |= self._stacked(boxes, desired)
        highest = min(tops.values())
        return {box: top - highest for box, top in tops.items()}

    def _stacked(self, boxes: list[int], desired: list[float]) -> dict[int, float]:
        """Returns tops as close to the desired ones as order and gaps allow (least squares, by
        pooling)."""
        offsets = [0.0]
        for box in boxes[:-1]:
            gap = BOX_GAP if self.heights[box] > PASS_HEIGHT else BOX_GAP / 2
            offsets.append(offsets[-1] + self.heights[box] + gap)
        pools: list[tuple[float, int]] = []
        for top, offset in zip(desired, offsets, strict=True):
            total, count = top - offset, 1
            while pools and pools[-1][0] / pools[-1][1] > total / count:
                more, others = pools.pop()
                total, count = total + more, count + others
            pools.append((total, count))
        starts = [total / count for total, count in pools for _ in range(count)]
        return {
            box: start + offset for box, start, offset in zip(boxes, starts, offsets, strict=True)
        }

    # Places.

    def _measure(self) -> None:
        count = len(self.boxes)
        x = 0.0
        left: dict[int, float] = {}
        right: dict[int, float] = {}
        for boxes in self.columns:
            width = max((self.boxes[box].width for box in boxes if box < count), default=0.0)
            for box in boxes:
                left[box] = x
                right[box] = x + (self.boxes[box].width if box < count else width)
            x += width + COLUMN_GAP
        self.width = x - COLUMN_GAP
        self.height = max(top + self.heights[box] for box, top in self.tops.items())
        self.places = {
            box.name: DiagramPoint(round(left[n], 1), round(self.tops[n], 1))
            for n, box in enumerate(self.boxes)
        }
        self.routes: dict[int, list[DiagramPoint]] = {}
        for (number, line, parent, _), chain in zip(self.lines, self.passes, strict=True):
            ports = (line.parent_port, line.child_port)
            # In a cycle one line runs against the direction of the columns.
            if chain[0] != parent:
                ports = ports[::-1]
            points = [DiagramPoint(right[chain[0]], self.tops[chain[0]] + ports[0])]
            for passed in chain[1:-1]:
                points += [DiagramPoint(left[passed], self.tops[passed])]
                points += [DiagramPoint(right[passed], self.tops[passed])]
            points.append(DiagramPoint(left[chain[-1]], self.tops[chain[-1]] + ports[1]))
            self.routes[number] = points if chain[0] == parent else points[::-1]


def _mean(values: dict[int, float], of: Iterable[int], otherwise: float) -> float:
    numbers = [values[member] for member in of]
    return sum(numbers) / len(numbers) if numbers else otherwise
