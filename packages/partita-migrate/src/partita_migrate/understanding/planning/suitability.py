"""How well each table suits DynamoDB: points for and against, each with its reason in a sentence.

The workloads that suit and those that do not are AWS's (whitepaper on migrating from an RDBMS,
tables 1 and 2, "Suitable workloads", "Unsuitable workloads" and "Planning phase").
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
    """From 0 to 100; 50 when nothing speaks for or against it."""
    verdict: Verdict
    workload: str | None = None
    """Which of the workloads that suit DynamoDB it looks like."""
    reasons: list[SuitabilityReason]


class SuitableWorkload(NamedTuple):
    """A workload that suits DynamoDB, and the words in a table's name that speak of it."""

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
    """All tables, the best candidates first."""
    surroundings = SuitabilityContext.of(inventory, goals)
    found = [_score(table, surroundings) for table in inventory.tables]
    return sorted(found, key=lambda one: (-one.score, one.table))


@dataclass(frozen=True)
class SuitabilityContext:
    """What a table's points depend on beside the table itself."""

    goals: Goals
    bytes_total: int
    referencing: dict[str, int]
    """How many foreign keys of other tables point at each."""
    lookups: frozenset[str]
    intersections: frozenset[str]

    @classmethod
    def of(cls, inventory: Inventory, goals: Goals) -> SuitabilityContext:
        referencing: dict[str, int] = {}
        for table in inventory.tables:
            for key in table.foreign_keys:
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


def _score(table: SourceTable, surroundings: SuitabilityContext) -> Suitability:
    workload = workload_of(table)
    reasons = [reason for look in LOOKS for reason in look(table, surroundings)]
    if workload is not None:
        reasons.insert(
            0,
            SuitabilityReason(
                workload.points, f"It looks like {workload.name}, which suits DynamoDB."
            ),
        )
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


def _key(table: SourceTable, surroundings: SuitabilityContext) -> Iterator[SuitabilityReason]:
    columns = len(table.primary_key)
    if not columns:
        yield SuitabilityReason(-25, "It has no primary key that could become the key of an item.")
    elif columns > 2:
        yield SuitabilityReason(
            -5, f"Its primary key of {columns} columns has to be joined into two."
        )
    else:
        yield SuitabilityReason(10, "Its primary key becomes the key of an item as it is.")


def _scale(table: SourceTable, surroundings: SuitabilityContext) -> Iterator[SuitabilityReason]:
    if table.row_count >= MANY_ROWS:
        yield SuitabilityReason(
            10, f"Its {table.row_count:,} rows gain from being spread over partitions."
        )
    elif table.row_count == 0:
        yield SuitabilityReason(-15, "It has no rows to judge by, and none to move.")
    share = (table.data_bytes or 0) / surroundings.bytes_total if surroundings.bytes_total else 0
    if share >= LARGE_SHARE and {"load", "costs"} & set(surroundings.goals.aims):
        yield SuitabilityReason(
            10, f"Moving it takes {share:.0%} of the bytes off the relational database, a goal."
        )


def _joins(table: SourceTable, surroundings: SuitabilityContext) -> Iterator[SuitabilityReason]:
    if table.name in surroundings.intersections:
        yield SuitabilityReason(
            5, "As an intersection table it becomes an item collection and its inverse."
        )
    elif len(table.foreign_keys) >= 4:
        yield SuitabilityReason(
            -10, f"Its {len(table.foreign_keys)} foreign keys speak of joins that have to go."
        )
    elif not table.foreign_keys:
        yield SuitabilityReason(5, "It stands for itself: no foreign key leads away from it.")
    referencing = surroundings.referencing.get(table.name, 0)
    if table.name in surroundings.lookups:
        yield SuitabilityReason(
            -15, "A lookup table is better copied into the items that use it, or kept in memory."
        )
    elif referencing >= 4:
        yield SuitabilityReason(
            -10, f"{referencing} foreign keys point at it: it is joined from many sides."
        )


def _unsuitable(
    table: SourceTable, surroundings: SuitabilityContext
) -> Iterator[SuitabilityReason]:
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
        yield SuitabilityReason(-10, f"Its {kind} index serves searches that DynamoDB does not do.")
    secondary = [index for index in table.indexes if not index.is_unique]
    if len(secondary) > GLOBAL_INDEXES_PER_TABLE_MAX:
        yield SuitabilityReason(-15, f"Its {len(secondary)} indexes speak of ad-hoc queries.")


def _logic(table: SourceTable, surroundings: SuitabilityContext) -> Iterator[SuitabilityReason]:
    unique = [
        index for index in table.indexes if index.is_unique and index.columns != table.primary_key
    ]
    if unique:
        yield SuitabilityReason(
            -5 * min(2, len(unique)), "Further unique columns need an item each, in transactions."
        )
    if table.triggers:
        yield SuitabilityReason(-5, "What its triggers do has to move into the application.")
    if not table.is_readable:
        yield SuitabilityReason(-25, "The user of the connection may not read it.")


LOOKS: tuple[Callable[[SourceTable, SuitabilityContext], Iterator[SuitabilityReason]], ...] = (
    _key,
    _scale,
    _joins,
    _unsuitable,
    _logic,
)
