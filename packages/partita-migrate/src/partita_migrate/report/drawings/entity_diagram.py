"""Draws the entity diagram: tables with their keys, and the cardinality at both ends of each
line."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple
from unicodedata import east_asian_width

from partita_migrate.report.drawings.diagram_layout import (
    DiagramBox,
    DiagramLayout,
    DiagramLine,
    DiagramPoint,
    lay_out,
)
from partita_migrate.understanding.planning.plan_page import relationship_text, rows_text
from partita_migrate.understanding.schema.inventory import (
    Inventory,
    Relationship,
    SourceColumn,
    SourceTable,
)

ONE_FIGURE_TABLES_MAX = 60
FIGURE_TABLES_MAX = 36
"""The maximum per figure, if the database needs several figures."""
ALL_COLUMNS_TABLES_MAX = 12
"""With more tables, only key columns are drawn."""
COLUMNS_MAX = 14
LOOKUPS_DRAWN_TABLES_MAX = 24
"""With more tables, lines to lookup tables would cover everything else."""

HEAD_HEIGHT = 40
ROW_HEIGHT = 18
CHAR_WIDTH = 7.3
NAME_CHAR_WIDTH = 8.8
"""Names are set in bold."""
BOX_CHARS_MIN = 18
BOX_CHARS_MAX = 34
MARK_CHARS = 4
MARGIN = 14
LOOP = 26

TAGS = {
    "lookup": "lookup",
    "hierarchy": "hierarchy",
    "entity-attribute-value": "attributes and values",
}


class DiagramRow(NamedTuple):
    y: float
    mark: str
    """ "PK", "FK" or empty."""
    name: str
    detail: str
    title: str


class DiagramEntity(NamedTuple):
    name: str
    title: str
    x: float
    y: float
    width: float
    height: float
    rows_text: str
    tag: str
    rows: list[DiagramRow]


class DiagramEdge(NamedTuple):
    path: str
    is_one: bool
    """True when a parent row has at most one child row."""
    is_optional: bool
    kind: str
    title: str


class DiagramFigure(NamedTuple):
    title: str
    width: float
    height: float
    entities: list[DiagramEntity]
    edges: list[DiagramEdge]


def draw_figures(inventory: Inventory) -> list[DiagramFigure]:
    """Returns one figure for the whole database; for a large one, a figure for each
    neighborhood."""
    if len(inventory.tables) <= ONE_FIGURE_TABLES_MAX:
        return [_Drawing(inventory, inventory.tables, inventory.database).figure()]
    tables = {table.name: table for table in inventory.tables}
    return [
        _Drawing(inventory, [tables[name] for name in names], title).figure()
        for title, names in neighbourhoods(inventory)
    ]


def neighbourhoods(inventory: Inventory) -> list[tuple[str, list[str]]]:
    """Groups tables that belong to the same table, up to a maximum. Unrelated tables come last."""
    owner = _owners(inventory)
    owned: dict[str, list[str]] = defaultdict(list)
    for child, parent in owner.items():
        owned[parent].append(child)
    groups: list[tuple[str, list[str]]] = []
    pending: dict[str, list[str]] = {}
    for table in _leaves_first(inventory, owner, owned):
        group = [table]
        for child in owned[table]:
            if len(group) + len(pending[child]) > FIGURE_TABLES_MAX:
                groups.append((_title(table, group), group))
                group = []
            group += pending.pop(child)
        if table in owner and len(group) < FIGURE_TABLES_MAX / 2:
            pending[table] = group
        else:
            pending[table] = []
            if group:
                groups.append((_title(table, group), group))
    alone = [name for _, group in groups if len(group) == 1 for name in group]
    # A stable sort, so that the pages of a report do not change between runs.
    related = sorted(
        (group for group in groups if len(group[1]) > 1), key=lambda group: -len(group[1])
    )
    chunks = [alone[n : n + FIGURE_TABLES_MAX] for n in range(0, len(alone), FIGURE_TABLES_MAX)]
    return related + [("Tables on their own", chunk) for chunk in chunks]


def _title(table: str, group: list[str]) -> str:
    return f"Around {table}" if table in group else f"{group[0]} and others that belong to {table}"


def _owners(inventory: Inventory) -> dict[str, str]:
    """Returns the table that each table belongs to, preferably by its primary key, and never in a
    cycle."""
    lookups = {
        relationship.parent
        for relationship in inventory.relationships
        if relationship.kind == "lookup"
    }
    names = {table.name for table in inventory.tables}
    owner: dict[str, str] = {}
    for table in inventory.tables:
        keys = sorted(
            table.foreign_keys, key=lambda key: not set(key.columns) <= set(table.primary_key)
        )
        for key in keys:
            parent = key.referenced_table
            if parent in names - lookups and not _is_above(owner, table.name, parent):
                owner[table.name] = parent
                break
    return owner


def _is_above(owner: dict[str, str], name: str, below: str) -> bool:
    step: str | None = below
    while step is not None and step != name:
        step = owner.get(step)
    return step is not None


def _leaves_first(
    inventory: Inventory, owner: dict[str, str], owned: dict[str, list[str]]
) -> list[str]:
    roots = [table.name for table in inventory.tables if table.name not in owner]
    ordered = list(roots)
    for name in ordered:
        ordered += owned[name]
    return ordered[::-1]


class _Drawing:
    """Draws one figure."""

    def __init__(self, inventory: Inventory, tables: Sequence[SourceTable], title: str) -> None:
        self.title = title
        self.tables = {table.name: table for table in tables}
        self.relationships = inventory.relationships
        self.is_detailed = len(tables) <= ALL_COLUMNS_TABLES_MAX
        self.drawn = [
            relationship for relationship in self.relationships if self._is_drawn(relationship)
        ]
        self.columns = {table.name: self._columns(table) for table in tables}

    def _is_drawn(self, relationship: Relationship) -> bool:
        if relationship.through is not None or not self.tables.keys() >= {
            relationship.parent,
            relationship.child,
        }:
            return False
        return relationship.kind != "lookup" or len(self.tables) <= LOOKUPS_DRAWN_TABLES_MAX

    def figure(self) -> DiagramFigure:
        boxes = [self._box(table) for table in self.tables.values()]
        lines = [
            DiagramLine(
                relationship.parent,
                relationship.child,
                self._port(relationship.parent, relationship.parent_columns),
                self._port(relationship.child, relationship.child_columns),
            )
            for relationship in self.drawn
        ]
        layout = lay_out(boxes, lines)
        entities = [self._entity(box, layout) for box in boxes]
        return DiagramFigure(
            title=self.title,
            width=layout.width + 2 * MARGIN + LOOP,
            height=layout.height + 2 * MARGIN,
            entities=entities,
            edges=list(self._edges(boxes, lines, layout)),
        )

    def _columns(self, table: SourceTable) -> list[SourceColumn]:
        """Returns the key columns, and other columns if there is room."""
        references = {name for key in table.foreign_keys for name in key.columns}
        keys = [
            column
            for column in table.columns
            if column.name in references or column.name in table.primary_key
        ]
        keys.sort(key=lambda column: column.name not in table.primary_key)
        rest = [column for column in table.columns if column not in keys]
        return (keys + rest if self.is_detailed else keys)[:COLUMNS_MAX]

    def _box(self, table: SourceTable) -> DiagramBox:
        columns = self.columns[table.name]
        chars = [
            math.ceil(_chars(table.name) * NAME_CHAR_WIDTH / CHAR_WIDTH) + 1,
            _chars(rows_text(table)) + len(self._tag(table)) + 8,
        ]
        chars += [
            MARK_CHARS + _chars(column.name) + _chars(self._detail(table, column)) + 3
            for column in columns
        ]
        rows = len(columns) + (len(columns) < len(table.columns))
        return DiagramBox(
            table.name,
            round(min(max(BOX_CHARS_MIN, *chars), BOX_CHARS_MAX) * CHAR_WIDTH + 12),
            HEAD_HEIGHT + rows * ROW_HEIGHT + 8,
        )

    def _port(self, table: str, columns: list[str]) -> float:
        names = [column.name for column in self.columns[table]]
        if columns and columns[0] in names:
            return HEAD_HEIGHT + 4 + (names.index(columns[0]) + 0.5) * ROW_HEIGHT
        return HEAD_HEIGHT / 2

    def _tag(self, table: SourceTable) -> str:
        for relationship in self.relationships:
            if relationship.through == table.name:
                return "many-to-many" if relationship.kind == "many-to-many" else "closure"
        for relationship in self.relationships:
            is_its_own = (
                relationship.parent == table.name if relationship.kind == "lookup" else True
            )
            if (
                relationship.kind in TAGS
                and table.name in (relationship.parent, relationship.child)
                and is_its_own
            ):
                if (
                    relationship.kind != "entity-attribute-value"
                    or relationship.child == table.name
                ):
                    return TAGS[relationship.kind]
        return ""

    def _detail(self, table: SourceTable, column: SourceColumn) -> str:
        """Returns the table that a foreign key refers to, if no line shows it; else the type, if
        there is room."""
        for key in table.foreign_keys:
            if column.name in key.columns and not self._has_line(table, key.columns):
                return f"→ {key.referenced_table}"
        # An enum's labels would be too long; its kind says enough.
        kind = column.kind if column.kind in ("enum", "set") else column.type.lower()
        return kind if self.is_detailed else ""

    def _has_line(self, table: SourceTable, columns: list[str]) -> bool:
        return any(
            relationship.child == table.name and relationship.child_columns == columns
            for relationship in self.drawn
        )

    def _entity(self, box: DiagramBox, layout: DiagramLayout) -> DiagramEntity:
        table = self.tables[box.name]
        place = layout.places[box.name].moved(MARGIN, MARGIN)
        chars = int((box.width - 12) / CHAR_WIDTH)
        rows = [
            self._row(table, column, chars, number)
            for number, column in enumerate(self.columns[table.name])
        ]
        more = len(table.columns) - len(rows)
        if more:
            text = f"{more} more column{'s' if more > 1 else ''}"
            rows.append(DiagramRow(_row_y(len(rows)), "", text, "", ""))
        return DiagramEntity(
            name=cut(table.name, int((box.width - 20) / NAME_CHAR_WIDTH)),
            title=table.name,
            x=place.x,
            y=place.y,
            width=box.width,
            height=box.height,
            rows_text=rows_text(table) + (" row" if table.row_count == 1 else " rows"),
            tag=self._tag(table),
            rows=rows,
        )

    def _row(self, table: SourceTable, column: SourceColumn, chars: int, number: int) -> DiagramRow:
        references = {name for key in table.foreign_keys for name in key.columns}
        is_key, refers = column.name in table.primary_key, column.name in references
        name = cut(column.name, chars - MARK_CHARS)
        room = chars - MARK_CHARS - _chars(name) - 2
        detail = self._detail(table, column)
        return DiagramRow(
            y=_row_y(number),
            mark="PK" if is_key else "FK" if refers else "",
            name=name,
            detail=cut(detail, room) if room > 3 else "",
            title=f"{column.name} {column.type}" + (", foreign key" if refers else ""),
        )

    def _edges(
        self, boxes: Sequence[DiagramBox], lines: Sequence[DiagramLine], layout: DiagramLayout
    ) -> Iterator[DiagramEdge]:
        sizes = {box.name: box for box in boxes}
        for relationship, line, route in zip(self.drawn, lines, layout.routes, strict=True):
            if route:
                path = curve([point.moved(MARGIN, MARGIN) for point in route])
            else:
                corner = layout.places[relationship.parent].moved(MARGIN, MARGIN)
                path = _loop(corner.x + sizes[relationship.parent].width, corner.y, line)
            yield DiagramEdge(
                path=path,
                is_one=relationship.kind == "one-to-one",
                is_optional=relationship.is_optional,
                kind=relationship.kind,
                title=relationship_text(relationship),
            )


def _row_y(number: int) -> float:
    return HEAD_HEIGHT + 4 + number * ROW_HEIGHT + 12.5


def curve(points: Sequence[DiagramPoint]) -> str:
    """Returns a path through all points that is horizontal at each of them."""
    parts = [f"M{points[0].x:.1f} {points[0].y:.1f}"]
    for start, end in pairwise(points):
        if start.y == end.y:
            parts.append(f"H{end.x:.1f}")
        else:
            middle = (start.x + end.x) / 2
            parts.append(
                f"C{middle:.1f} {start.y:.1f} {middle:.1f} {end.y:.1f} {end.x:.1f} {end.y:.1f}"
            )
    return "".join(parts)


def _loop(x: float, y: float, line: DiagramLine) -> str:
    begin, end = y + line.parent_port, y + line.child_port
    if begin == end:
        begin, end = begin - 8, end + 8
    return (
        f"M{x:.1f} {begin:.1f}C{x + LOOP:.1f} {begin:.1f}"
        f" {x + LOOP:.1f} {end:.1f} {x:.1f} {end:.1f}"
    )


def _chars(text: str) -> int:
    """Returns the display width of a text: East Asian characters take two places."""
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def cut(text: str, chars_max: int) -> str:
    if _chars(text) <= chars_max:
        return text
    kept = ""
    for char in text:
        if _chars(kept) + _chars(char) > chars_max - 1:
            break
        kept += char
    return f"{kept}…"
