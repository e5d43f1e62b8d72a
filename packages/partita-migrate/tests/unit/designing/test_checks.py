"""Edits a valid model in one place and checks what `model --check` reports."""

from __future__ import annotations

import tomllib
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from partita_migrate.designing.checks.check_design import check
from partita_migrate.designing.model_settings import ModelSettings
from partita_migrate.designing.proposals.propose import denormalized
from partita_migrate.model.design import Design, ItemAttribute
from partita_migrate.model.design_findings import DesignFinding
from partita_migrate.model.model_files import to_toml
from partita_migrate.model.volumes import Volumes
from partita_migrate.understanding.analysis import Analysis

from ..games import ASSOCIATIONS, expected, games, table_4
from ..schemas import inventory, table, unique
from .test_rules import measured


def edited(old: str, new: str) -> list[DesignFinding]:
    """Returns the findings after one line of the file was edited."""
    text = to_toml(denormalized(expected(), table_4(), ModelSettings()))
    assert old in text
    changed = msgspec.convert(tomllib.loads(text.replace(old, new)), Design)
    return check(changed, table_4(), expected())


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        (
            '"PlayersGamesItems.Score"',
            '"PlayersGamesItems.Points"',
            "Games, PlayersGamesItems, Score: the source has no column 'PlayersGamesItems.Points'.",
        ),
        (
            'source = "PlayersGamesItems"',
            'source = "Associations"',
            "Games, PlayersGamesItems: the source has no table 'Associations'.",
        ),
        (
            'column = "PlayersGamesItems.Score"',
            'column = "PlayersGamesItems.Score", constant = "1"',
            "Games, PlayersGamesItems, Score: give exactly one of column, constant, template,"
            " collect and expires (there are 2).",
        ),
        (
            'source = "PlayersGamesItems"',
            'source = "PlayersGamesItems"\nunless = [["Games.GameId = Players.PlayerId"]]',
            "Games, PlayersGamesItems: unless 'Games.GameId = Players.PlayerId' does not start at"
            " PlayersGamesItems.",
        ),
        (
            'column = "PlayersGamesItems.Score"',
            'column = "PlayersGamesItems.Score", when = "latest"',
            "Games, PlayersGamesItems: latest needs latest_by and per, which decide the latest"
            " row.",
        ),
        (
            'column = "PlayersGamesItems.Score"',
            'column = "PlayersGamesItems.Score", when = "newest"',
            "Games, PlayersGamesItems, Score: when has 'newest'; write"
            ' "column is null", "column = value" or "latest".',
        ),
        (
            ', through = ["PlayersGamesItems.PlayerId = Players.PlayerId"]',
            "",
            "Games, PlayersGamesItems, PlayerName: Players.PlayerName belongs to another table;"
            " give the foreign keys that lead to it in through.",
        ),
        (
            'name = "GSI2"',
            'name = "GSI9"',
            "access 'registered': Games has no index 'GSI2'.",
        ),
        (
            'sort_key = { name = "RegistrationDate", type = "S" }',
            'sort_key = { name = "RegistrationDate", type = "N" }',
            "Games, PlayersGamesItems: 'RegistrationDate' is S, but the key of Games says N.",
        ),
        (
            '    { name = "Score", type = "N", column = "PlayersGamesItems.Score" },\n',
            "",
            "left_out: PlayersGamesItems.Score is not in any item; add an attribute for it, or"
            " list it in left_out with the reason.",
        ),
        (
            'pattern = "players"',
            'pattern = "fans"',
            "access 'players': no request serves this pattern, it would need a scan; change it, or"
            " remove it from patterns.toml.",
        ),
        (
            '{ attribute = "RegistrationDate", comparison = "between"',
            '{ attribute = "Score", comparison = "between"',
            "access 'registered': Score is not a key attribute of GSI2; move it into filter.",
        ),
        (
            'name = "GSI1"\n',
            'name = "GSI 1"\n',
            "access 'player': Games has no index 'GSI1'.",
        ),
    ],
)
def test_an_edit_that_breaks_a_model_is_named_with_its_place(
    old: str, new: str, finding: str
) -> None:
    found = [f"{one.place}: {one.message}" for one in edited(old, new) if one.severity == "error"]
    assert finding in found


def test_a_model_that_was_only_read_and_written_has_nothing_wrong() -> None:
    assert edited("Games", "Games") == []


def good() -> Design:
    return denormalized(expected(), table_4(), ModelSettings())


def test_a_list_cannot_have_two_members_of_one_name() -> None:
    found = edited(
        '{ name = "Score", type = "N", column = "PlayersGamesItems.Score" }',
        '{ name = "Score", type = "L", collect = ["Games.GameName", "PlayersGamesItems.GameName"],'
        ' through = ["PlayersGamesItems.GameId = Games.GameId"] }',
    )
    assert "collect has two columns named GameName; a map can hold only one of them." in {
        one.message for one in found
    }


def test_values_that_follow_each_other_in_a_key_are_separated() -> None:
    (table,) = good().tables
    (entity,) = table.entities
    for template, is_refused in (
        ("{GameId}{PlayerId}", True),
        ("{GameId}-{PlayerId}", True),
        ("{GameId}#{PlayerId}", False),
        ("{Score:08}{PlayerId}", False),
    ):
        keyed = [
            ItemAttribute(name="PlayerId", type="S", template=template)
            if one.name == "PlayerId"
            else one
            for one in entity.attributes
        ]
        found = errors(with_table(entities=[replace(entity, attributes=keyed)]))
        assert any("without #" in message for message in found) == is_refused, template


def errors(design: Design, volumes: Volumes | None = None) -> list[str]:
    found = check(design, table_4(), volumes or expected())
    return [one.message for one in found if one.severity == "error"]


def with_table(**changes: Any) -> Design:
    design = good()
    return replace(design, tables=[replace(design.tables[0], **changes)])


def test_more_indexes_than_a_table_may_have() -> None:
    (index, _) = good().tables[0].indexes
    many = [replace(index, name=f"GSI{number}") for number in range(1, 22)]
    (problem,) = errors(with_table(indexes=[*many, good().tables[0].indexes[1]]))[:1]
    assert problem == "22 global secondary indexes; a table may have 20."


def test_a_key_longer_than_the_service_takes() -> None:
    long = measured(
        ASSOCIATIONS, columns={"GameId": {"bytes_max": 3000}, "PlayerId": {"bytes_max": 10}}
    )
    found = errors(good(), Volumes(games(), Analysis(tables=[long])))
    assert "its longest value has 3,000 bytes; this key may have at most 2,048." in found
    assert "its longest value has 3,000 bytes; this key may have at most 1,024." in found


def test_an_item_larger_than_the_service_takes() -> None:
    large = measured(
        ASSOCIATIONS, columns={"GameId": {}, "Score": {"bytes_max": 500_000}}, size=300_000
    )
    found = errors(good(), Volumes(games(), Analysis(tables=[large])))
    assert any("an item may have 409,600" in message for message in found)


def test_a_collection_larger_than_a_local_index_allows() -> None:
    (index, other) = good().tables[0].indexes
    design = with_table(
        indexes=[
            index,
            other,
            replace(other, name="LSI1", kind="local", partition_key=good().tables[0].partition_key),
        ]
    )
    huge = measured(ASSOCIATIONS, 10**9, keys={"GameId": (10, 5 * 10**8)}, size=100)
    found = errors(design, Volumes(games(), Analysis(tables=[huge])))
    assert any("its largest item collection would have" in message for message in found)


def test_a_hot_key_is_found_at_the_expected_rate() -> None:
    patterns = [
        replace(one, calls_per_second=5000) if one.name == "add" else one for one in table_4()
    ]
    skewed = measured(ASSOCIATIONS, keys={"GameId": (10, 900)})
    volumes = Volumes(games(), Analysis(tables=[skewed]))
    found = [one.message for one in check(good(), patterns, volumes)]
    assert (
        "one value of GameId would get 4,500 write units a second; a partition takes 1,000: spread"
        " it over shards." in found
    )


def test_a_unique_constraint_that_nothing_keeps() -> None:
    assert "the model does not say how it is kept." in errors(replace(good(), unique=[]))


def test_a_pattern_that_went_away_is_only_a_warning() -> None:
    (finding,) = check(good(), table_4()[:-1], expected())
    assert (finding.severity, finding.place) == ("warning", "access 'players'")


def test_two_types_of_items_under_one_key() -> None:
    (entity,) = good().tables[0].entities
    (problem,) = errors(with_table(entities=[entity, replace(entity, name="again")]))
    assert problem.startswith("its items could have the same keys as those of PlayersGamesItems")


def test_findings_come_in_the_order_of_the_model() -> None:
    """Equal files give equal reports, whatever the iteration order of sets."""
    names = [f"{letter}_codes" for letter in "fbdace"]
    tables = [table(name, "id, code string", "id", indexes=[unique("code")]) for name in names]
    settings = ModelSettings(unique_by_application=[f"{name}(code)" for name in names])
    volumes = Volumes(inventory(*tables))
    found = check(denormalized(volumes, [], settings), [], volumes)
    places = [one.place for one in found if one.message == "only the application keeps it."]
    assert places == [f"unique {name}(code)" for name in names]
