"""Tests example items, and the drawn views of tables and indexes."""

from __future__ import annotations

from msgspec.structs import replace

from partita.database.item.attribute_values import Item
from partita_migrate.model.design import (
    Design,
    Entity,
    ItemAttribute,
    KeyAttribute,
    SecondaryIndex,
    TableDesign,
)
from partita_migrate.model.items.example_items import ExampleItems
from partita_migrate.report.drawings.table_views import (
    ITEMS_PER_VIEW_MAX,
    draw,
    draw_tables,
    text_of,
)

S = "S"
N = "N"

ROWS: dict[str, list[Item]] = {
    "player": [
        {"id": {N: "7"}, "name": {S: "Ann"}, "born": {S: "2001-02-03"}},
        {"id": {N: "8"}, "name": {S: "Bob"}},
    ],
    "score": [
        {"player_id": {N: "7"}, "game": {S: "chess"}, "points": {N: "12"}},
        {"player_id": {N: "7"}, "game": {S: "go"}, "points": {N: "9"}},
        {"player_id": {N: "8"}, "game": {S: "go"}, "points": {N: "3"}},
    ],
}
UP = ["score.player_id = player.id"]
DOWN = ["player.id = score.player_id"]


def entity(source: str, *attributes: ItemAttribute, **more: object) -> Entity:
    return Entity(name=source, source=source, attributes=list(attributes), **more)  # type: ignore[arg-type]


def items(one: Entity) -> list[Item]:
    return ExampleItems(ROWS).of(one)


def test_columns_templates_constants_and_what_another_table_has() -> None:
    score = entity(
        "score",
        ItemAttribute(name="PK", type="S", template="P#{player_id:05}"),
        ItemAttribute(name="SK", type="S", constant="score"),
        ItemAttribute(name="points", type="N", column="score.points"),
        ItemAttribute(name="playerName", type="S", column="player.name", through=UP),
    )
    assert items(score)[0] == {
        "PK": {S: "P#00007"},
        "SK": {S: "score"},
        "points": {N: "12"},
        "playerName": {S: "Ann"},
    }


def test_null_leaves_its_attribute_out() -> None:
    player = entity(
        "player",
        ItemAttribute(name="id", type="S", column="player.id"),
        ItemAttribute(name="born", type="S", column="player.born"),
        ItemAttribute(name="month", type="S", template="{born:%Y-%m}"),
    )
    assert items(player) == [
        {"id": {S: "7"}, "born": {S: "2001-02-03"}, "month": {S: "2001-02"}},
        {"id": {S: "8"}},
    ]


def test_a_value_with_the_separator_in_it_is_escaped() -> None:
    """`a#b, c` and `a, b#c` are two keys."""
    rows: dict[str, list[Item]] = {
        "t": [
            {"x": {S: "a#b"}, "y": {S: "c"}},
            {"x": {S: "a"}, "y": {S: "b#c"}},
            {"x": {S: "a%23b"}, "y": {S: "c"}},
            {"x": {S: ""}, "y": {S: "c"}},
            {"y": {S: "c"}},
            {"x": {S: "%"}, "y": {S: "c"}},
        ]
    }
    keyed = entity("t", ItemAttribute(name="PK", type="S", template="{x}#{y}"))
    keys = [one["PK"][S] for one in ExampleItems(rows).of(keyed)]
    assert keys == ["a%23b#c", "a#b%23c", "a%2523b#c", "#c", "%#c", "%25#c"]
    assert len(set(keys)) == len(keys)


def test_the_path_from_the_root_of_a_tree() -> None:
    rows: dict[str, list[Item]] = {
        "staff": [
            {"id": {S: "ann"}},
            {"id": {S: "b#b"}, "boss": {S: "ann"}},
            {"id": {S: "cid"}, "boss": {S: "b#b"}},
        ]
    }
    up = ["staff.boss = staff.id"]
    staff = entity(
        "staff",
        ItemAttribute(name="root", type="S", template="S#{id:root}", through=up),
        ItemAttribute(name="path", type="S", template="{id:path}", through=up),
    )
    assert [(one["root"][S], one["path"][S]) for one in ExampleItems(rows).of(staff)] == [
        ("S#ann", "ann#"),
        ("S#ann", "ann#b%23b#"),
        ("S#ann", "ann#b%23b#cid#"),
    ]


def test_a_list_draws_each_column_from_its_own_table() -> None:
    """The amount comes from the intersection table, the name from the other side."""
    rows: dict[str, list[Item]] = {
        "film": [{"id": {N: "1"}, "name": {S: "Jaws"}}],
        "cast": [{"film": {N: "1"}, "actor": {N: "2"}, "name": {S: "Quint"}}],
        "actor": [{"id": {N: "2"}, "name": {S: "Shaw"}, "born": {N: "1927"}}],
    }
    film = entity(
        "film",
        ItemAttribute(
            name="cast",
            type="L",
            collect=["cast.actor", "cast.name", "actor.born"],
            through=["film.id = cast.film", "cast.actor = actor.id"],
        ),
    )
    assert ExampleItems(rows).of(film)[0]["cast"] == {
        "L": [{"M": {"actor": {N: "2"}, "name": {S: "Quint"}, "born": {N: "1927"}}}]
    }


def test_members_and_expiry() -> None:
    player = entity(
        "player",
        ItemAttribute(name="games", type="SS", collect=["score.game"], through=DOWN),
        ItemAttribute(
            name="scores", type="L", collect=["score.game", "score.points"], through=DOWN
        ),
        ItemAttribute(name="ttl", type="N", expires="player.born", after_seconds=60),
    )
    ann, bob = items(player)
    assert ann["games"] == {"SS": ["chess", "go"]}
    assert bob["scores"] == {"L": [{"M": {"game": {S: "go"}, "points": {N: "3"}}}]}
    assert ann["ttl"] == {N: "981158460"}


def test_the_latest_row_of_each() -> None:
    latest = entity(
        "score",
        ItemAttribute(name="player", type="N", column="score.player_id"),
        ItemAttribute(name="points", type="N", column="score.points"),
        rows="latest",
        latest_by="score.points",
        per=["score.player_id"],
    )
    # 12 is more than 9, although its text is less.
    assert sorted(one["points"][N] for one in items(latest)) == ["12", "3"]


def test_without_rows_items_are_made_up() -> None:
    guessed = entity("nobody", ItemAttribute(name="id", type="S", column="nobody.id"))
    assert len(items(guessed)) == 2


def overloaded() -> TableDesign:
    key = KeyAttribute(name="PK", type="S")
    points = KeyAttribute(name="points", type="N")
    return TableDesign(
        name="game_data",
        partition_key=key,
        sort_key=KeyAttribute(name="SK", type="S"),
        indexes=[
            SecondaryIndex(
                name="by_points", partition_key=key, sort_key=points, projection="KEYS_ONLY"
            ),
            SecondaryIndex(name="nobody", partition_key=KeyAttribute(name="absent", type="S")),
        ],
        entities=[
            entity(
                "score",
                ItemAttribute(name="PK", type="S", template="P#{player_id}"),
                ItemAttribute(name="SK", type="S", template="G#{game}"),
                ItemAttribute(name="points", type="N", column="score.points"),
                ItemAttribute(name="game", type="S", column="score.game"),
            ),
            entity(
                "player",
                ItemAttribute(name="PK", type="S", template="P#{id}"),
                ItemAttribute(name="SK", type="S", constant="A"),
                ItemAttribute(name="name", type="S", column="player.name"),
            ),
        ],
    )


def test_items_of_one_partition_stand_together_in_the_order_of_their_sort_keys() -> None:
    own, by_points, nobody = draw(overloaded(), ExampleItems(ROWS)).views
    seven = own.groups[0]
    assert seven.partition.value == "P#7"
    assert [item.sort.value for item in seven.items if item.sort] == ["A", "G#chess", "G#go"]
    assert [item.entity for item in seven.items] == ["player", "score", "score"]
    # Numbers sort as numbers, root items are not in a sparse index, and only keys are projected.
    in_index = by_points.groups[0].items
    assert [item.sort.value for item in in_index if item.sort] == ["9", "12"]
    assert {cell.name for item in in_index for cell in item.cells} == {"SK"}
    assert nobody.groups == []


def test_a_view_stays_readable() -> None:
    wide = entity(
        "score",
        ItemAttribute(name="PK", type="S", template="{player_id}{game}"),
        *(ItemAttribute(name=f"a{n}", type="S", column="score.game") for n in range(50)),
    )
    table = TableDesign(
        name="wide",
        partition_key=KeyAttribute(name="PK", type="S"),
        entities=[wide] * 60,
    )
    drawn = draw(table, ExampleItems(ROWS)).views[0]
    assert sum(len(group.items) for group in drawn.groups) == ITEMS_PER_VIEW_MAX
    assert drawn.left_out == 60 * 2 - ITEMS_PER_VIEW_MAX
    item = drawn.groups[0].items[0]
    assert item.more == 50 - len(item.cells) > 0
    narrow = replace(table, entities=[wide])
    shown, others = draw_tables(
        Design(name="many", kind="denormalized", tables=[narrow] * 50), ExampleItems({})
    )
    assert len(shown) + len(others) == 50 and others


def test_values_as_people_read_them() -> None:
    assert text_of({"BOOL": True}) == "true"
    assert text_of({"SS": ["a", "b"]}) == "{ a, b }"
    assert text_of({"L": [{"N": "1"}, {"M": {"x": {"NULL": True}}}]}) == "[ 1, { x: null } ]"
    assert text_of({"B": ""}) == "(bytes)"
    assert len(text_of({"S": "long" * 100})) == 60
