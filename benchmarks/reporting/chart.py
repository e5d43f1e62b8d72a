"""The plot of the report as SVG: bars for each operation, one per server.

Operations differ by a factor of a hundred, so each bar is the ratio to the faster rival (1.0).
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

WIDTH = 900
LEFT = 210
RIGHT = 110
BAR = 11
GAP = 14
TOP = 76
SCALES = (2, 5, 10, 20, 50, 100)
GRID_LINES = 5
COLOURS = ("#0b6e4f", "#c1666b", "#d9a441", "#4f7cac", "#8d86c9")
FONT = 'font-family="system-ui, sans-serif"'


@dataclass(frozen=True)
class Bar:
    server: str
    ratio: float
    requests_per_second: float


@dataclass(frozen=True)
class Group:
    title: str
    bars: list[Bar]
    target: float | None


def draw(title: str, groups: list[Group]) -> str:
    """Returns the SVG file."""
    servers = list(dict.fromkeys(bar.server for group in groups for bar in group.bars))
    colours = dict(zip(servers, COLOURS, strict=False))
    largest = max((bar.ratio for group in groups for bar in group.bars), default=1.0)
    largest = max([largest, *(group.target or 0 for group in groups)])
    scale = next((scale for scale in SCALES if scale >= largest), largest)
    height = TOP + sum(len(group.bars) * BAR + GAP for group in groups) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" {FONT}>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="10" y="22" font-size="15" font-weight="600">{escape(title)}</text>',
        *_legend(colours),
        *_grid(scale, height),
    ]
    y = TOP
    for group in groups:
        parts += _group(group, y, scale, colours)
        y += len(group.bars) * BAR + GAP
    return "\n".join([*parts, "</svg>", ""])


def _x(ratio: float, scale: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * ratio / scale


def _legend(colours: dict[str, str]) -> list[str]:
    parts = []
    for place, (server, colour) in enumerate(colours.items()):
        x = 10 + place * 135
        parts.append(f'<rect x="{x}" y="34" width="11" height="11" fill="{colour}"/>')
        parts.append(f'<text x="{x + 16}" y="44" font-size="12">{escape(server)}</text>')
    x = 10 + len(colours) * 135
    parts.append(f'<line x1="{x + 5}" y1="32" x2="{x + 5}" y2="47" stroke="#000"/>')
    parts.append(f'<text x="{x + 16}" y="44" font-size="12">target</text>')
    return parts


def _grid(scale: float, height: int) -> list[str]:
    parts = []
    for line in range(GRID_LINES + 1):
        ratio = scale * line / GRID_LINES
        x = _x(ratio, scale)
        parts.append(
            f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{height - 8}" stroke="#e3e3e3"/>'
        )
        parts.append(
            f'<text x="{x:.1f}" y="{TOP - 12}" font-size="10" fill="#666" '
            f'text-anchor="middle">{ratio:g}x</text>'
        )
    return parts


def _group(group: Group, top: int, scale: float, colours: dict[str, str]) -> list[str]:
    middle = top + len(group.bars) * BAR / 2 + 4
    parts = [
        f'<text x="{LEFT - 8}" y="{middle:.1f}" font-size="12" text-anchor="end">'
        f"{escape(group.title)}</text>"
    ]
    for place, bar in enumerate(group.bars):
        y = top + place * BAR
        end = _x(bar.ratio, scale)
        parts.append(
            f'<rect x="{LEFT}" y="{y}" width="{max(end - LEFT, 1):.1f}" height="{BAR - 1}" '
            f'fill="{colours.get(bar.server, "#999999")}"/>'
        )
        parts.append(
            f'<text x="{end + 4:.1f}" y="{y + 9}" font-size="9" fill="#444">'
            f"{bar.requests_per_second:,.0f}/s</text>"
        )
    if group.target is not None:
        x = _x(group.target, scale)
        parts.append(
            f'<line x1="{x:.1f}" y1="{top - 2}" x2="{x:.1f}" '
            f'y2="{top + len(group.bars) * BAR + 1}" stroke="#000"/>'
        )
    return parts
