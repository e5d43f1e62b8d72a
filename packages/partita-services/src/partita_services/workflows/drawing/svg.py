"""A drawing as SVG."""

from __future__ import annotations

from html import escape

from partita_services.workflows.drawing.machine_layout import (
    DrawingUnits,
    MachineLayout,
    StateBox,
    lay_out,
)
from partita_services.workflows.language import StateMachine, States

UNITS = DrawingUnits(char=8, line=18, pad_x=14, pad_y=10, gap=28, lane=20)
MARGIN = 20
STRAIGHT = 4
"""Lines that are almost straight are drawn straight, up to this many pixels."""
COLOURS = {
    "Task": "#d9e8fb",
    "Choice": "#fdf0c8",
    "Wait": "#ece4f7",
    "Pass": "#eeeeee",
    "Parallel": "#f7faf7",
    "Map": "#f7faf7",
    "Succeed": "#d8f0d8",
    "Fail": "#f9d9d6",
}
HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" '
    'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13">\n'
    '<defs><marker id="head" markerWidth="9" markerHeight="9" refX="7" refY="3.5" orient="auto">'
    '<path d="M0 0 L7 3.5 L0 7 z" fill="#555"/></marker></defs>\n'
    '<rect width="100%" height="100%" fill="white"/>\n'
)


def svg(machine: StateMachine) -> str:
    layout = lay_out(States(machine.start_at, machine.states), UNITS)
    size = (layout.width + 2 * MARGIN, layout.height + 2 * MARGIN)
    parts: list[str] = []
    _draw(parts, layout, MARGIN, MARGIN)
    return HEAD.format(*(f"{side:g}" for side in size)) + "\n".join(parts) + "\n</svg>\n"


def _draw(parts: list[str], layout: MachineLayout, left: float, top: float) -> None:
    for route in layout.routes:
        source, target = route.source.middle + left, route.target.middle + left
        start, end = route.source.y + route.source.height + top, route.target.y + top
        across = f"M{source:g} {start:g} V{route.lane_y + top:g} H{target:g}"
        if abs(source - target) < STRAIGHT:
            across = f"M{target:g} {start:g}"
        head = "" if route.target.node.is_between else ' marker-end="url(#head)"'
        parts.append(
            f'<path d="{across} V{end:g}" fill="none" stroke="#555" stroke-linejoin="round"{head}/>'
        )
    for box in layout.boxes:
        _draw_box(parts, box, box.x + left, box.y + top)


def _draw_box(parts: list[str], box: StateBox, x: float, y: float) -> None:
    middle = x + box.width // 2
    if box.node.is_between:
        parts.append(f'<path d="M{middle:g} {y:g} V{y + box.height:g}" stroke="#555"/>')
        if box.node.text:
            parts.append(
                f'<rect x="{x:g}" y="{y:g}" width="{box.width:g}" height="{UNITS.line:g}" '
                f'fill="white"/>{_line(middle, y + 13, box.node.text, "#555")}'
            )
        return
    colour = COLOURS.get(box.node.state.type, "white") if box.node.state else "white"
    radius = 8 if box.node.state else box.height / 2
    parts.append(
        f'<rect x="{x:g}" y="{y:g}" width="{box.width:g}" height="{box.height:g}" '
        f'rx="{radius:g}" fill="{colour}" stroke="#555"/>'
    )
    for number, line in enumerate(box.lines):
        text_y = y + UNITS.pad_y + 13 + number * UNITS.line
        parts.append(_line(middle, text_y, line, "#555" if number else "black"))
    inner_x = x + UNITS.pad_x
    for layout in box.inner:
        _draw(parts, layout, inner_x, y + UNITS.pad_y + len(box.lines) * UNITS.line)
        inner_x += layout.width + UNITS.gap


def _line(x: float, y: float, text: str, colour: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="middle" fill="{colour}">{escape(text)}</text>'
