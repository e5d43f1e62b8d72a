"""The two designs of the whitepaper's gaming application: its tables 5 and 6."""

from __future__ import annotations

import pytest

from partita_migrate.designing.checks.check_design import check
from partita_migrate.designing.model_settings import ModelSettings
from partita_migrate.designing.proposals.propose import denormalized, single_table
from partita_migrate.model.design import Design, PatternAccess, SecondaryIndex

from ..games import ASSOCIATIONS, expected, table_4


@pytest.fixture
def first() -> Design:
    return denormalized(expected(), table_4(), ModelSettings())


@pytest.fixture
def second() -> Design:
    return single_table(expected(), table_4(), ModelSettings(table_name="Games_alternative"))


def served(design: Design) -> dict[str, tuple[str, list[tuple[str, str, str]], int | None]]:
    return {one.pattern: (place(one), keys(one), one.limit) for one in design.access}


def place(access: PatternAccess) -> str:
    return access.index or "Table"


def keys(access: PatternAccess) -> list[tuple[str, str, str]]:
    return [(one.attribute, one.comparison, one.value) for one in access.key]


def key_names(keys: SecondaryIndex) -> tuple[str, str]:
    assert keys.sort_key is not None
    return keys.partition_key.name, keys.sort_key.name


def test_the_denormalised_design_is_one_table_with_a_reversed_index_and_one_by_date(
    first: Design,
) -> None:
    (table,) = first.tables
    assert table.name == "Games"
    assert [key.name for key in table.keys] == ["GameId", "PlayerId"]
    assert {index.name: key_names(index) for index in table.indexes} == {
        "GSI1": ("PlayerId", "GameId"),
        "GSI2": ("PlayerId", "RegistrationDate"),
    }
    assert all(index.projection == "ALL" for index in table.indexes)


def test_the_denormalised_items_hold_what_the_figure_shows(first: Design) -> None:
    (entity,) = first.tables[0].entities
    assert {one.name for one in entity.attributes} == {
        "entity_type",
        "GameId",
        "PlayerId",
        "RegistrationDate",
        "GameName",
        "GameType",
        "Score",
        "PlayerName",
    }
    name = entity.attribute("GameName")
    assert name is not None
    assert (name.column, name.through) == (
        "Games.GameName",
        [f"{ASSOCIATIONS}.GameId = Games.GameId"],
    )


def test_table_5(first: Design) -> None:
    game, player = ("GameId", "=", "{GameId}"), ("PlayerId", "=", "{PlayerId}")
    between = "{RegistrationDate.from} and {RegistrationDate.to}"
    assert served(first) == {
        "game": ("Table", [game], 1),
        "player": ("GSI1", [player], 1),
        "registered": ("GSI2", [player, ("RegistrationDate", "between", between)], None),
        "played": ("GSI1", [player], None),
        "score": ("Table", [game, player], None),
        "add": ("Table", [game, player], None),
        "players": ("Table", [game], None),
    }


def test_the_single_table_has_root_items_and_sparse_indexes(second: Design) -> None:
    (table,) = second.tables
    assert table.name == "Games_alternative"
    assert [key.name for key in table.keys] == ["PK", "SK"]
    assert {index.name: key_names(index) for index in table.indexes} == {
        "GSI1": ("GSI1PK", "GSI1SK"),
        "GSI2": ("GSI2PK", "GSI2SK"),
    }
    items = {
        entity.name: {one.name: one.template or one.constant or "" for one in entity.attributes}
        for entity in table.entities
    }
    assert items == {
        "Games": {
            "PK": "G#{GameId}",
            "SK": "root",
            "entity_type": "Games",
            "GameId": "",
            "GameName": "",
            "GameType": "",
        },
        "Players": {
            "PK": "P#{PlayerId}",
            "SK": "root",
            "entity_type": "Players",
            "PlayerId": "",
            "PlayerName": "",
        },
        ASSOCIATIONS: {
            "PK": "G#{GameId}",
            "SK": "P#{PlayerId}",
            "entity_type": ASSOCIATIONS,
            "GameId": "",
            "PlayerId": "",
            "RegistrationDate": "",
            "Score": "",
            "GSI1PK": "P#{PlayerId}",
            "GSI1SK": "G#{GameId}",
            "GSI2PK": "P#{PlayerId}",
            "GSI2SK": "PL#{RegistrationDate}",
        },
    }


def test_table_6(second: Design) -> None:
    game, player = ("PK", "=", "G#{GameId}"), "P#{PlayerId}"
    between = "PL#{RegistrationDate.from} and PL#{RegistrationDate.to}"
    both = [game, ("SK", "=", "P#{PlayerId}")]
    assert served(second) == {
        "game": ("Table", [game, ("SK", "=", "root")], None),
        "player": ("Table", [("PK", "=", "P#{PlayerId}"), ("SK", "=", "root")], None),
        "registered": (
            "GSI2",
            [("GSI2PK", "=", player), ("GSI2SK", "between", between)],
            None,
        ),
        "played": ("GSI1", [("GSI1PK", "=", player), ("GSI1SK", "begins_with", "G#")], None),
        "score": ("Table", both, None),
        "add": ("Table", both, None),
        "players": ("Table", [game, ("SK", "begins_with", "P#")], None),
    }


def test_both_pass_the_check(first: Design, second: Design) -> None:
    assert check(first, table_4(), expected()) == []
    assert check(second, table_4(), expected()) == []


def test_what_the_whitepaper_could_have_saved_is_said(first: Design) -> None:
    assert any("GSI2 could also serve what GSI1 serves" in choice for choice in first.choices)


def test_what_the_whitepaper_loses_is_said(first: Design, second: Design) -> None:
    assert [risk for risk in first.risks if "no row of PlayersGamesItems refers to" in risk]
    assert second.risks == []
