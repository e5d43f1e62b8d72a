"""The whitepaper's gaming application, its access patterns, and what its data holds."""

from __future__ import annotations

from typing import Any

from partita_migrate.model.volumes import Expectation, Volumes
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.schema.inventory import Inventory

from .schemas import foreign_key, inventory, table

ASSOCIATIONS = "PlayersGamesItems"


def games() -> Inventory:
    return inventory(
        table("Games", "GameId string, GameName string, GameType string", "GameId"),
        table("Players", "PlayerId string, PlayerName string", "PlayerId"),
        table(
            ASSOCIATIONS,
            "GameId string, PlayerId string, RegistrationDate date, Score integer",
            "GameId PlayerId",
            foreign_keys=[
                foreign_key("GameId", "Games.GameId"),
                foreign_key("PlayerId", "Players.PlayerId"),
            ],
        ),
    )


def pattern(
    name: str, operation: str, table: str, by: str, rate: float, **more: Any
) -> AccessPattern:
    """`by`: columns of the table, or of another as table.column."""

    def full(names: str) -> list[str]:
        return [one if "." in one else f"{table}.{one}" for one in names.split()]

    for key in ("range", "order_by", "columns"):
        if key in more:
            more[key] = full(more[key])
    return AccessPattern(
        name=name,
        category="by distinct value",
        operation=operation,  # type: ignore[arg-type]
        table=table,
        equality=full(by),
        calls_per_second=rate,
        **more,
    )


def table_4() -> list[AccessPattern]:
    """In the whitepaper's order, with the number of items that its table 7 gives."""
    return [
        pattern("game", "read", "Games", "GameId", 2000),
        pattern("player", "read", "Players", "PlayerId", 1000),
        pattern(
            "registered", "read", ASSOCIATIONS, "PlayerId", 500, range="RegistrationDate", items=3
        ),
        pattern("played", "read", ASSOCIATIONS, "PlayerId", 150, items=10),
        pattern("score", "update", ASSOCIATIONS, "GameId PlayerId", 100, columns="Score"),
        pattern("add", "insert", ASSOCIATIONS, "", 50),
        pattern("players", "read", ASSOCIATIONS, "GameId", 1, items=1000),
    ]


def expected() -> Volumes:
    return Volumes(games(), None, {ASSOCIATIONS: Expectation(rows=10**8, item_kb=0.7)})
