"""The old counter: a relational table for each period, with a row for each key and step of time.

It counts at once instead of in windows: every page hit is an upsert into all three tables. One
database serves one brand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from partita.errors import PartitaError
from partita.installation.optional_packages import packages_required

if TYPE_CHECKING:
    from psycopg import Connection

RESULTS_MAX = 100


class OldPeriod(NamedTuple):
    table: str
    seconds: int
    """The length of one step of time."""
    steps: int
    """How many steps a list sums up."""


OLD_PERIODS = {
    "justnow": OldPeriod("page_hit_five_minutes", 60, 5),
    "day": OldPeriod("page_hit_hour", 3_600, 24),
    "week": OldPeriod("page_hit_day", 86_400, 7),
}

SCHEMA = """
CREATE TABLE IF NOT EXISTS {table} (
    id BIGSERIAL NOT NULL PRIMARY KEY,
    hit_amount BIGINT,
    asset_id BIGINT,
    resource_type VARCHAR(256),
    section_id BIGINT,
    hit_stmp TIMESTAMP WITH TIME ZONE,
    paid_type VARCHAR(32),
    UNIQUE (asset_id, resource_type, section_id, hit_stmp, paid_type)
)"""

UPSERT = """
INSERT INTO {table} AS old (hit_amount, asset_id, resource_type, section_id, hit_stmp, paid_type)
VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (asset_id, resource_type, section_id, hit_stmp, paid_type)
DO UPDATE SET hit_amount = old.hit_amount + excluded.hit_amount"""

SELECT = """
SELECT asset_id, resource_type, section_id, paid_type, sum(hit_amount)::bigint AS hits
FROM {table}
WHERE hit_stmp >= %(first)s AND hit_stmp < %(end)s
  AND (%(resource_types)s::text[] IS NULL OR resource_type = ANY(%(resource_types)s))
  AND (%(sections)s::bigint[] IS NULL OR section_id = ANY(%(sections)s))
  AND (%(paid_types)s::text[] IS NULL OR paid_type = ANY(%(paid_types)s))
GROUP BY asset_id, resource_type, section_id, paid_type
ORDER BY hits DESC, asset_id
LIMIT %(limit)s"""

DELETE_STALE = "DELETE FROM {table} WHERE hit_stmp < %s"


class PageHit(NamedTuple):
    """Hits of an asset, as they were sent to the old service at a time."""

    asset_id: int
    hits: int
    section_id: int
    resource_type: str
    paid_type: str
    time: float


class Popular(NamedTuple):
    asset_id: int
    resource_type: str
    section_id: int
    paid_type: str
    hits: int


class Size(NamedTuple):
    rows: int
    bytes: int
    """The size on disk, with indexes."""


class RelationalCounter:
    """One connection to one brand's database."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection

    @classmethod
    def connect(cls, url: str) -> RelationalCounter:
        with packages_required("partita-page-hit-counter"):
            import psycopg
        try:
            # A SELECT must not leave a transaction open; batches open their own.
            return cls(psycopg.connect(url, autocommit=True))
        except psycopg.Error as error:
            reason = str(error).strip().splitlines()[0]
            raise PartitaError(f"Cannot connect to PostgreSQL: {reason}.") from error

    def create(self) -> None:
        for period in OLD_PERIODS.values():
            self._execute(SCHEMA, period)

    def analyze(self) -> None:
        """Collects statistics, as autovacuum does sooner or later. Without them the planner only
        guesses about new tables."""
        for period in OLD_PERIODS.values():
            self._execute("VACUUM ANALYZE {table}", period)

    def count(self, batch: Sequence[PageHit]) -> int:
        """Counts a batch in one transaction. Returns the number of rows that were written."""
        with self._connection.transaction(), self._connection.cursor() as cursor:
            for period in OLD_PERIODS.values():
                cursor.executemany(_statement(UPSERT, period), [_row(hit, period) for hit in batch])
        return len(batch) * len(OLD_PERIODS)

    def most_popular(
        self,
        period_name: str,
        now: float,
        resource_types: Iterable[str] = (),
        sections: Iterable[int] = (),
        paid_types: Iterable[str] = (),
        limit: int = RESULTS_MAX,
    ) -> list[Popular]:
        """Returns the list at a time, over the latest steps that have ended by then."""
        period = OLD_PERIODS[period_name]
        end = _step(now, period)
        parameters = {
            "first": _moment(end - period.steps * period.seconds),
            "end": _moment(end),
            "resource_types": list(resource_types) or None,
            "sections": list(sections) or None,
            "paid_types": list(paid_types) or None,
            "limit": min(limit, RESULTS_MAX),
        }
        rows = self._connection.execute(_statement(SELECT, period), parameters).fetchall()
        return [Popular(*row) for row in rows]

    def delete_stale(self, now: float) -> int:
        """Deletes steps that no list shows any more. Returns the number of rows."""
        return sum(
            self._execute(
                DELETE_STALE,
                period,
                (_moment(_step(now, period) - period.steps * period.seconds),),
            )
            for period in OLD_PERIODS.values()
        )

    def size(self) -> Size:
        rows, size_bytes = 0, 0
        for period in OLD_PERIODS.values():
            sizes = self._connection.execute(
                f"SELECT count(*), pg_total_relation_size('{period.table}') FROM {period.table}"
            ).fetchone()
            if sizes is not None:
                rows += sizes[0]
                size_bytes += sizes[1]
        return Size(rows, size_bytes)

    def close(self) -> None:
        self._connection.close()

    def _execute(self, sql: str, period: OldPeriod, parameters: tuple[Any, ...] = ()) -> int:
        return self._connection.execute(_statement(sql, period), parameters).rowcount


def _statement(sql: str, period: OldPeriod) -> Any:
    """Fills in the name of the table, which comes from OLD_PERIODS and never from a client."""
    return sql.format(table=period.table)


def _row(hit: PageHit, period: OldPeriod) -> tuple[Any, ...]:
    stamp = _moment(_step(hit.time, period))
    return (hit.hits, hit.asset_id, hit.resource_type, hit.section_id, stamp, hit.paid_type)


def _step(time: float, period: OldPeriod) -> int:
    return int(time) // period.seconds * period.seconds


def _moment(time: int) -> datetime:
    return datetime.fromtimestamp(time, UTC)
