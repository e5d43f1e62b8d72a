"""A drawing in box-drawing characters."""

from __future__ import annotations

from collections import defaultdict

from partita_services.workflows.drawing.machine_layout import (
    DrawingUnits,
    MachineLayout,
    StateBox,
    lay_out,
)
from partita_services.workflows.language import StateMachine, States

UNITS = DrawingUnits(char=1, line=1, pad_x=2, pad_y=1, gap=3, lane=1)
UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
LINES = {
    UP: "│", DOWN: "│", UP | DOWN: "│",
    LEFT: "─", RIGHT: "─", LEFT | RIGHT: "─",
    DOWN | RIGHT: "┌", DOWN | LEFT: "┐", UP | RIGHT: "└", UP | LEFT: "┘",
    UP | DOWN | RIGHT: "├", UP | DOWN | LEFT: "┤",
    DOWN | LEFT | RIGHT: "┬", UP | LEFT | RIGHT: "┴", UP | DOWN | LEFT | RIGHT: "┼",
}  # fmt: skip


class Canvas:
    def __init__(self) -> None:
        self._lines: defaultdict[tuple[int, int], int] = defaultdict(int)
        self._texts: dict[tuple[int, int], str] = {}

    def down(self, x: int, top: int, bottom: int) -> None:
        for y in range(top, bottom):
            self._lines[x, y] |= DOWN
            self._lines[x, y + 1] |= UP

    def across(self, y: int, left: int, right: int) -> None:
        for x in range(left, right):
            self._lines[x, y] |= RIGHT
            self._lines[x + 1, y] |= LEFT

    def write(self, x: int, y: int, text: str) -> None:
        for offset, character in enumerate(text):
            self._texts[x + offset, y] = character

    def text(self) -> str:
        cells = {place: LINES[directions] for place, directions in self._lines.items()}
        cells |= self._texts
        rows: list[list[str]] = [[] for _ in range(max(y for _, y in cells) + 1)]
        for x, y in sorted(cells):
            rows[y] += " " * (x - len(rows[y])) + cells[x, y]
        return "\n".join(map("".join, rows))


def text(machine: StateMachine) -> str:
    canvas = Canvas()
    _draw(canvas, lay_out(States(machine.start_at, machine.states), UNITS), 0, 0)
    return canvas.text()


def _draw(canvas: Canvas, layout: MachineLayout, left: int, top: int) -> None:
    for route in layout.routes:
        source, target = int(route.source.middle) + left, int(route.target.middle) + left
        start = int(route.source.y + route.source.height) - 1 + top
        lane, end = int(route.lane_y) + top, int(route.target.y) + top
        canvas.down(source, start, lane)
        canvas.across(lane, min(source, target), max(source, target))
        canvas.down(target, lane, end)
    for box in layout.boxes:
        _draw_box(canvas, box, int(box.x) + left, int(box.y) + top)


def _draw_box(canvas: Canvas, box: StateBox, left: int, top: int) -> None:
    right, bottom = left + int(box.width) - 1, top + int(box.height) - 1
    if box.node.is_between:
        canvas.down(int(box.middle - box.x) + left, top, bottom)
        if box.node.text:
            canvas.write(left, top, f" {box.node.text} ")
        return
    canvas.across(top, left, right)
    canvas.across(bottom, left, right)
    canvas.down(left, top, bottom)
    canvas.down(right, top, bottom)
    if box.node.above:
        canvas.write(int(box.middle - box.x) + left, top, "▼")
    for number, line in enumerate(box.lines, 1):
        canvas.write(left + 1, top + number, line.center(int(box.width) - 2))
    x = left + int(UNITS.pad_x)
    for layout in box.inner:
        _draw(canvas, layout, x, top + len(box.lines) + 1)
        x += int(layout.width + UNITS.gap)
