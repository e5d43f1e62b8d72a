"""Scores how well each table suits DynamoDB: points for and against it, each with its reason.

The suitable and unsuitable workloads are AWS's (whitepaper on migrating from an RDBMS, tables 1 and
2, "Suitable workloads", "Unsuitable workloads" and "Planning phase").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from msgspec import Struct

from partita.foundation.service_limits import GLOBAL_INDEXES_PER_TABLE_MAX
from partita_migrate.understanding.planning.difficulties.analytical_tables import is_fact_table
from partita_migrate.understanding.planning.difficulties.column_difficulties import (
    LARGE_ROW_BYTES,
    large_columns,
    row_bytes,
)
from partita_migrate.understanding.planning.difficulties.table_difficulties import SEARCHES
from partita_migrate.understanding.planning.goals import Goals
from partita_migrate.understanding.schema.inventory import Inventory, SourceTable
from partita_migrate.understanding.schema.name_words import words
from partita_migrate.understanding.schema.relationships import eav_attribute

Verdict = Literal["good candidate", "possible", "poor candidate"]

NEUTRAL = 50
GOOD_MIN = 70
POSSIBLE_MIN = 40
MANY_ROWS = 1_000_000
LARGE_SHARE = 0.2


class SuitabilityReason(Struct, frozen=True):
    points: int
    text: str


class Suitability(Struct, frozen=True, kw_only=True, omit_defaults=True):
    table: str
    score: int
    """From 0 to 100; 50 if nothing speaks for or against the table."""
    verdict: Verdict
    workload: str | None = None
    """The suitable workload that the table resembles."""
    reasons: list[SuitabilityReason]


class SuitableWorkload(NamedTuple):
    """A workload that suits DynamoDB, and words in a table's name that hint at it."""

    name: str
    points: int
    words: frozenset[str]


WORKLOADS = (
    SuitableWorkload(
        "session state",
        30,
        frozenset({"session", "sessions", "token", "tokens", "cookie", "cookies", "login"}),
    ),
    SuitableWorkload(
        "user preferences",
        25,
        frozenset({"preference", "preferences", "prefs", "setting", "settings", "option"})
        | {"options", "config", "configuration", "profile", "profiles"},
    ),
    SuitableWorkload(
        "log and event data",
        25,
        frozenset({"log", "logs", "event", "events", "audit", "history", "activity", "click"})
        | {"clicks", "impression", "impressions", "hit", "hits", "visit", "visits", "reading"}
        | {"readings", "sensor", "sensors", "telemetry", "measurement"}
        | {"measurements", "notification", "notifications", "message", "messages"},
    ),
    SuitableWorkload(
        "game and application state",
        20,
        frozenset({"game", "games", "player", "players", "score", "scores", "state"})
        | {"leaderboard", "match", "matches"},
    ),
    SuitableWorkload(
        "votes", 20, frozenset({"vote", "votes", "poll", "polls", "rating", "ratings"})
    ),
    SuitableWorkload(
        "shopping carts and orders",
        15,
        frozenset({"cart", "carts", "basket", "baskets", "order", "orders", "invoice", "rental"})
        | {"invoices", "rentals", "booking", "bookings"},
    ),
    SuitableWorkload(
        "transactions of users",
        15,
        frozenset({"payment", "payments", "transaction", "transactions", "transfer"}),
    ),
    SuitableWorkload(
        "profiles of customers",
        15,
        frozenset({"customer", "customers", "user", "users", "account", "accounts", "member"})
        | {"members"},
    ),
    SuitableWorkload("inventory", 10, frozenset({"inventory", "stock", "stocks", "shipment"})),
    SuitableWorkload(
        "access control",
        10,
        frozenset({"role", "roles", "permission", "permissions", "grant", "grants", "acl"}),
    ),
)
EAV = SuitableWorkload("entity-attribute-value", 25, frozenset())


def score(inventory: Inventory, goals: Goals) -> list[Suitability]:
    """Returns the scores of all tables, the best candidates first."""
    context = SuitabilityContext.of(inventory, goals)
    scores = [_score(table, context) for table in inventory.tables]
    return sorted(scores, key=lambda candidate: (-candidate.score, candidate.table))


@dataclass(frozen=True)
class SuitabilityContext:
    """The inputs of the score of a table, apart from the table itself."""

    goals: Goals
    bytes_total: int
    referencing: dict[str, int]
    """The number of foreign keys of other tables that refer to each table."""
    lookups: frozenset[str]
    intersections: frozenset[str]

    @classmethod
    def of(cls, inventory: Inventory, goals: Goals) -> SuitabilityContext:
        referencing: dict[str, int] = {}
        for table in inventory.tables:
            for key in table.foreign_keys:
                # A reference to the own table does not tie it to others.
                if key.referenced_table != table.name:
                    referencing[key.referenced_table] = referencing.get(key.referenced_table, 0) + 1
        return cls(
            goals=goals,
            bytes_total=sum(table.data_bytes or 0 for table in inventory.tables),
            referencing=referencing,
            lookups=frozenset(
                relationship.parent
                for relationship in inventory.relationships
                if relationship.kind == "lookup"
            ),
            intersections=frozenset(
                relationship.through
                for relationship in inventory.relationships
                if relationship.through is not None
            ),
        )


def _score(table: SourceTable, context: SuitabilityContext) -> Suitability:
    workload = workload_of(table)
    reasons = [reason for look in LOOKS for reason in look(table, context)]
    if workload is not None:
        reasons.insert(
            0,
            SuitabilityReason(
                workload.points, f"It looks like {workload.name}, which suits DynamoDB."
            ),
        )
    # Reasons add up beyond the scale on tables with many of them.
    points = min(100, max(0, NEUTRAL + sum(reason.points for reason in reasons)))
    return Suitability(
        table=table.name,
        score=points,
        verdict=(
            "good candidate"
            if points >= GOOD_MIN
            else "possible"
            if points >= POSSIBLE_MIN
            else "poor candidate"
        ),
        workload=workload.name if workload else None,
        reasons=reasons,
    )


def workload_of(table: SourceTable) -> SuitableWorkload | None:
    if eav_attribute(table) is not None:
        return EAV
    named = set(words(table.name))
    return next((workload for workload in WORKLOADS if workload.words & named), None)


def _key(table: SourceTable, context: SuitabilityContext) -> Iterator[SuitabilityReason]:
    columns = len(table.primary_key)
    if not columns:
        yield SuitabilityReason(-25, "It has no primary key that could become the key of an item.")
    elif columns > 2:
        yield SuitabilityReason(
            -5, f"Its primary key of {columns} columns has to be joined into two."
        )
    else:
        yield SuitabilityReason(10, "Its primary key becomes the key of an item as it is.")


def _scale(table: SourceTable, context: SuitabilityContext) -> Iterator[SuitabilityReason]:
    if table.row_count >= MANY_ROWS:
        yield SuitabilityReason(
            10, f"Its {table.row_count:,} rows gain from being spread over partitions."
        )
    elif table.row_count == 0:
        yield SuitabilityReason(-15, "It has no rows to judge it by, and none to move.")
    share = (table.data_bytes or 0) / context.bytes_total if context.bytes_total else 0
    if share >= LARGE_SHARE and {"load", "costs"} & set(context.goals.aims):
        yield SuitabilityReason(
            10, f"Moving it takes {share:.0%} of the bytes off the relational database, a goal."
        )


def _joins(table: SourceTable, context: SuitabilityContext) -> Iterator[SuitabilityReason]:
    if table.name in context.intersections:
        yield SuitabilityReason(
            5, "As an intersection table it becomes an item collection and its inverse."
        )
    elif len(table.foreign_keys) >= 4:
        yield SuitabilityReason(
            -10,
            f"Its {len(table.foreign_keys)} foreign keys suggest joins, which DynamoDB does not"
            " have.",
        )
    elif not table.foreign_keys:
        yield SuitabilityReason(5, "It stands alone: it has no foreign key.")
    referencing = context.referencing.get(table.name, 0)
    if table.name in context.lookups:
        yield SuitabilityReason(
            -15, "A lookup table is better copied into the items that use it, or kept in memory."
        )
    elif referencing >= 4:
        yield SuitabilityReason(
            -10, f"{referencing} foreign keys refer to it: many tables join it."
        )


def _unsuitable(table: SourceTable, context: SuitabilityContext) -> Iterator[SuitabilityReason]:
    if is_fact_table(table):
        yield SuitabilityReason(
            -30, "It looks like a fact table; analytical processing needs joins."
        )
    blobs = [column for column in large_columns(table) if column.kind == "binary"]
    if row_bytes(table) > LARGE_ROW_BYTES:
        yield SuitabilityReason(-40, "It stores large objects: its rows are near or over 400 KB.")
    elif blobs:
        yield SuitabilityReason(
            -20,
            "Large binaries belong into S3, with their address in the item: "
            + ", ".join(column.name for column in blobs)
            + ".",
        )
    searches = sorted({index.kind for index in table.indexes if index.kind in SEARCHES})
    for kind in searches:
        yield SuitabilityReason(
            -10, f"Its {kind} index serves searches that DynamoDB does not have."
        )
    secondary = [index for index in table.indexes if not index.is_unique]
    if len(secondary) > GLOBAL_INDEXES_PER_TABLE_MAX:
        yield SuitabilityReason(-15, f"Its {len(secondary)} indexes suggest ad-hoc queries.")


def _logic(table: SourceTable, context: SuitabilityContext) -> Iterator[SuitabilityReason]:
    unique = [
        index for index in table.indexes if index.is_unique and index.columns != table.primary_key
    ]
    if unique:
        yield SuitabilityReason(
            -5 * min(2, len(unique)),
            "Further unique columns need a guard item each, in transactions.",
        )
    if table.triggers:
        yield SuitabilityReason(-5, "The work of its triggers has to move into the application.")
    if not table.is_readable:
        yield SuitabilityReason(-25, "The user of the connection may not read it.")


LOOKS: tuple[Callable[[SourceTable, SuitabilityContext], Iterator[SuitabilityReason]], ...] = (
    _key,
    _scale,
    _joins,
    _unsuitable,
    _logic,
)
