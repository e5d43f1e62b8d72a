"""Tests the layout of the entity diagram: no overlaps, and equal input gives equal output."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from partita_migrate.report.drawings.diagram_layout import (
    DiagramBox,
    DiagramLayout,
    DiagramLine,
    lay_out,
)
from partita_migrate.report.drawings.entity_diagram import (
    FIGURE_TABLES_MAX,
    cut,
    draw_figures,
    neighbourhoods,
)
from partita_migrate.understanding.schema.inventory import Inventory

from ..schemas import foreign_key, inventory, table, unique


def assert_apart(boxes: list[DiagramBox], layout: DiagramLayout) -> None:
    for one, other in combinations(boxes, 2):
        (x, y), (u, v) = layout.places[one.name], layout.places[other.name]
        is_beside = x + one.width <= u or u + other.width <= x
        is_above = y + one.height <= v + 0.2 or v + other.height <= y + 0.2
        assert is_beside or is_above, (one, other)
    for box in boxes:
        x, y = layout.places[box.name]
        assert x >= 0 and y >= -0.1
        assert x + box.width <= layout.width + 0.1 and y + box.height <= layout.height + 0.1


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_boxes_never_lie_on_each_other(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 25))
    heights = data.draw(st.lists(st.integers(40, 300), min_size=count, max_size=count))
    boxes = [DiagramBox(f"t{n}", 100 + 7 * (n % 9), height) for n, height in enumerate(heights)]
    ends = st.integers(0, count - 1)
    pairs = data.draw(st.lists(st.tuples(ends, ends), max_size=40))
    lines = [DiagramLine(f"t{one}", f"t{other}", 20, 30) for one, other in pairs]
    layout = lay_out(boxes, lines)
    assert_apart(boxes, layout)
    assert layout == lay_out(boxes, lines)
    for line, route in zip(lines, layout.routes, strict=True):
        assert bool(route) == (line.parent != line.child)


def test_a_line_begins_and_ends_at_its_boxes() -> None:
    boxes = [DiagramBox("parent", 120, 80), DiagramBox("child", 150, 100)]
    layout = lay_out(boxes, [DiagramLine("parent", "child", 30, 55)])
    parent, child = layout.places["parent"], layout.places["child"]
    assert parent.x + 120 < child.x
    assert layout.routes == [[(parent.x + 120, parent.y + 30), (child.x, child.y + 55)]]


def test_what_is_referred_to_stands_to_the_left() -> None:
    boxes = [DiagramBox(name, 100, 60) for name in "abcd"]
    layout = lay_out(
        boxes, [DiagramLine(one, other, 10, 10) for one, other in ("ab", "bc", "ac", "cd")]
    )
    assert [layout.places[name].x for name in "abcd"] == sorted(
        layout.places[name].x for name in "abcd"
    )
    # The line from a to c goes past b, not through it.
    passing = layout.routes[2][1]
    b = layout.places["b"]
    assert not b.y <= passing.y <= b.y + 60


def people() -> Inventory:
    return inventory(
        table("city", "id, name string", "id"),
        table(
            "person",
            "id, city_id integer?, boss_id integer?",
            "id",
            foreign_keys=[foreign_key("city_id", "city.id"), foreign_key("boss_id", "person.id")],
        ),
        table(
            "passport",
            "person_id",
            "person_id",
            foreign_keys=[foreign_key("person_id", "person.id")],
            indexes=[unique("person_id")],
        ),
    )


def test_cardinality_and_keys() -> None:
    (figure,) = draw_figures(people())
    kinds = {edge.kind: edge for edge in figure.edges}
    assert kinds["one-to-one"].is_one and not kinds["one-to-one"].is_optional
    assert not kinds["hierarchy"].is_one and kinds["hierarchy"].is_optional
    assert len(figure.edges) == 3
    person = next(one for one in figure.entities if one.title == "person")
    assert [(row.mark, row.name) for row in person.rows] == [
        ("PK", "id"),
        ("FK", "city_id"),
        ("FK", "boss_id"),
    ]


def many(count: int) -> Inventory:
    """Returns a hub with many tables around it, chains, and unrelated tables."""
    tables = [table("hub", "id, a string, b string, c string", "id")]
    for number in range(count):
        keys = [[], [foreign_key("ref", "hub.id")], [foreign_key("ref", f"t{number - 1:03}.id")]]
        tables.append(
            table(f"t{number:03}", "id, ref", "id", foreign_keys=keys[number % 3 if number else 0])
        )
    return inventory(*tables)


def test_every_table_of_a_large_database_is_drawn_once() -> None:
    source = many(500)
    groups = neighbourhoods(source)
    drawn = [name for _, names in groups for name in names]
    assert sorted(drawn) == sorted(table.name for table in source.tables)
    assert all(len(names) <= FIGURE_TABLES_MAX for _, names in groups)
    figures = draw_figures(source)
    assert [len(figure.entities) for figure in figures] == [len(names) for _, names in groups]
    # What is drawn elsewhere is named instead.
    far = next(
        row
        for figure in figures
        for entity in figure.entities
        for row in entity.rows
        if row.detail == "→ hub"
    )
    assert far.mark == "FK"


def test_a_circle_of_tables_is_drawn() -> None:
    tables = [
        table(f"t{n}", "id, ref", "id", foreign_keys=[foreign_key("ref", f"t{(n + 1) % 70}.id")])
        for n in range(70)
    ]
    source = inventory(*tables)
    assert sum(len(figure.entities) for figure in draw_figures(source)) == 70


def test_names_are_cut_by_their_width() -> None:
    assert cut("short", 10) == "short"
    assert cut("a" * 20, 10) == "a" * 9 + "…"
    assert cut("名前の長いテーブル", 10) == "名前の長…"
