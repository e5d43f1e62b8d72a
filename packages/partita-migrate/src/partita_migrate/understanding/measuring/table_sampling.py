"""Samples the rows of a table, without reading the others.

The whitepaper asks for simple random sampling with replacement. It is done by guessing: keys are
drawn evenly between the least and the greatest, and those that exist are the sample, whatever the
gaps. That needs an integer key with not too many gaps. Otherwise PostgreSQL returns whole pages
(TABLESAMPLE SYSTEM), and MySQL is read through once, where each row is taken with the same
probability. A table with no more rows than its share of the sample is read as a whole.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any, NamedTuple

from partita_migrate.understanding.schema.inventory import SourceTable
from partita_migrate.understanding.sources.column_reading import ColumnReading
from partita_migrate.understanding.sources.source_connection import SourceDatabase, SourceError

SAMPLE_ROWS = 1_000_000
"""The number of rows of the whole database, as in the whitepaper's example."""
SAMPLE_BYTES_MAX = 2 * 1024**3
"""The limit for one table, by its mean row: rows of a megabyte are not read a million times."""
GUESSES_PER_ROW_MAX = 50
"""Keys with more gaps than this are not guessed."""
KEYS_PER_STATEMENT = 1000
KEYS_PER_ROUND_MAX = 500_000
ALIAS = "partita_sample"
"""The alias by which mining recognizes Partita's own statements."""
ROWID = "rowid"
"""The key that SQLite gives to a table without an integer key."""


class SampleDraw(NamedTuple):
    row: tuple[Any, ...]
    times: int = 1
    """The number of times that the row was drawn at once."""
    is_repeat: bool = False
    """True if the row was drawn before: it counts again for sizes, but tells nothing new about
    values."""


class SamplingMethod(Enum):
    """The method of a sample; the values are the analysis's words for it."""

    EVERY_ROW = "every row was read"
    RANDOM_KEYS = "rows drawn at random with replacement, by random values of {key}"
    RANDOM_PAGES = (
        "rows of pages drawn at random (TABLESAMPLE SYSTEM), because the table has no integer key"
        " with few gaps; rows of one page can be alike, so the true intervals are wider"
    )
    ONE_PASS = (
        "rows taken with equal probability in one pass over the table, because it has no integer"
        " key with few gaps"
    )


@dataclass
class RowSample:
    """Draws the rows of one table, and keeps what is known about the sample afterwards."""

    source: SourceDatabase
    table: SourceTable
    readings: Sequence[ColumnReading]
    size: int
    """The number of rows to draw."""
    seed: int
    method: SamplingMethod = SamplingMethod.EVERY_ROW
    key: str | None = None
    drawn: int = 0
    rows_in_table: float = 0
    """Exact if every row was read, else estimated by the sampling itself."""

    @property
    def is_exact(self) -> bool:
        return self.method is SamplingMethod.EVERY_ROW

    def draws(self) -> Iterator[list[SampleDraw]]:
        """Yields chunks of rows. A table that has more rows than its count said is sampled after
        all."""
        row_count = self.table.row_count
        if row_count <= self.size:
            row_count = self._count_up_to_size()
        if row_count <= self.size:
            yield from self._every_row()
        elif guessing := self._guessing(row_count):
            yield from self._random_keys(*guessing, row_count)
        elif self.source.dialect == "postgresql":
            yield from self._a_part(SamplingMethod.RANDOM_PAGES, row_count)
        else:
            yield from self._a_part(SamplingMethod.ONE_PASS, row_count)

    def _count_up_to_size(self) -> int:
        """Returns the true count if there are more rows than the sample: counts are estimates, or
        from yesterday."""
        one_more = f"SELECT 1 FROM {self._from} LIMIT 1 OFFSET {self.size}"
        if not self.source.rows(one_more):
            return self.table.row_count
        return int(self.source.rows(f"SELECT COUNT(*) FROM {self._from}")[0][0])

    @property
    def _from(self) -> str:
        return f"{self.source.relation(self.table)} AS {ALIAS}"

    @property
    def _select(self) -> str:
        return ", ".join(reading.sql for reading in self.readings)

    def _every_row(self) -> Iterator[list[SampleDraw]]:
        self.method = SamplingMethod.EVERY_ROW
        for chunk in self.source.stream(f"SELECT {self._select} FROM {self._from}"):
            self.drawn += len(chunk)
            yield [SampleDraw(row) for row in chunk]
        self.rows_in_table = self.drawn

    def _guessing(self, row_count: int) -> tuple[str, int, int] | None:
        """Returns an integer key with its bounds, if guessing its values finds enough rows."""
        for name in self._integer_keys():
            key = self.source.quote(name) if name != ROWID else ROWID
            try:
                bounds = self.source.rows(f"SELECT MIN({key}), MAX({key}) FROM {self._from}")[0]
            except SourceError:
                if name == ROWID:
                    continue
                raise
            if all(isinstance(bound, int) for bound in bounds):
                least, greatest = bounds
                # With large gaps between the keys most guesses would miss.
                if greatest - least < GUESSES_PER_ROW_MAX * row_count:
                    return name, least, greatest
        return None

    def _integer_keys(self) -> Iterator[str]:
        kinds = {column.name: column for column in self.table.columns}
        unique = [index.columns for index in self.table.indexes if index.is_unique]
        for columns in (self.table.primary_key, *unique):
            column = kinds.get(columns[0]) if len(columns) == 1 else None
            if column and column.kind == "integer" and not column.is_nullable:
                yield column.name
        # WITHOUT ROWID tables have none; the query for its bounds then fails, and the caller goes
        # on.
        if self.source.dialect == "sqlite" and ROWID not in kinds:
            yield ROWID

    def _random_keys(
        self, name: str, least: int, greatest: int, row_count: int
    ) -> Iterator[list[SampleDraw]]:
        """Draws keys until enough of them existed. Each draw gives every row the same chance."""
        self.method, self.key = SamplingMethod.RANDOM_KEYS, name
        random = Random(f"{self.seed} {self.table.name}")
        span = greatest - least + 1
        found_per_guess = min(1.0, row_count / span)
        # A million keys take 8 MB in an array, and many times that in a set.
        drawn_places: array[int] = array("Q")
        guesses = 0
        # Gives up when keys are much sparser than the bounds and the row count promised.
        while self.drawn < self.size and guesses < 2 * GUESSES_PER_ROW_MAX * self.size:
            # Slightly more than expected, so that a second round is rarely needed.
            guesses_wanted = int((self.size - self.drawn) / found_per_guess * 1.01) + 10
            guesses_wanted = min(guesses_wanted, KEYS_PER_ROUND_MAX)
            # The keys are sorted, so that neighbors share a page of the index.
            keys = Counter(random.randint(least, greatest) for _ in range(guesses_wanted))
            guesses += guesses_wanted
            before = array("Q", sorted(drawn_places))
            for numbers, draws in self._rows_of(name, dict(sorted(keys.items()))):
                # Places count from the least key, because an unsigned key can exceed 63 bits.
                places = [number - least for number in numbers]
                drawn_places.extend(places)
                yield [
                    draw._replace(is_repeat=True) if _is_among(before, place) else draw
                    for place, draw in zip(places, draws, strict=True)
                ]
            found_per_guess = max(self.drawn, 1) / guesses
        self.rows_in_table = span * self.drawn / guesses

    def _rows_of(
        self, name: str, keys: Mapping[int, int]
    ) -> Iterator[tuple[list[int], list[SampleDraw]]]:
        """Yields the rows with these keys, each as often as its key was drawn."""
        key = self.source.quote(name) if name != ROWID else ROWID
        drawn = list(keys)
        for start in range(0, len(drawn), KEYS_PER_STATEMENT):
            among = ", ".join(map(str, drawn[start : start + KEYS_PER_STATEMENT]))
            rows = self.source.rows(
                f"SELECT {key}, {self._select} FROM {self._from} WHERE {key} IN ({among})"
            )
            draws = [SampleDraw(row[1:], keys[row[0]]) for row in rows]
            self.drawn += sum(draw.times for draw in draws)
            yield [row[0] for row in rows], draws

    def _a_part(self, method: SamplingMethod, row_count: int) -> Iterator[list[SampleDraw]]:
        """Yields each row, or each page of rows, with the same probability."""
        self.method = method
        probability = min(1.0, self.size / row_count)
        while True:
            statement = f"SELECT {self._select} FROM {self._from} {self._chance(probability)}"
            for chunk in self.source.stream(statement):
                self.drawn += len(chunk)
                yield [SampleDraw(row) for row in chunk]
            if self.drawn or probability == 1.0:
                break
            # A table with few pages may have been skipped as a whole.
            probability = min(1.0, probability * 10)
        self.rows_in_table = self.drawn / probability

    def _chance(self, probability: float) -> str:
        """Returns the clause that makes the source answer with a part of the rows."""
        # SYSTEM reads only the chosen pages; BERNOULLI would read all of them.
        if self.source.dialect == "postgresql":
            return f"TABLESAMPLE SYSTEM ({probability * 100:.6f}) REPEATABLE ({self.seed})"
        if self.source.dialect == "sqlite":
            # RANDOM() returns an integer of 64 bits and takes no seed.
            return f"WHERE ABS(RANDOM() % 1000000) < {probability * 1_000_000:.0f}"
        return f"WHERE RAND({self.seed}) < {probability:.9f}"


def _is_among(ordered: array[int], number: int) -> bool:
    position = bisect_left(ordered, number)
    return position < len(ordered) and ordered[position] == number


def shares(tables: Sequence[SourceTable], total: int) -> dict[str, int]:
    """Returns how many rows each table may contribute. Small tables leave their share to the
    others.

    The precision of a percentile depends on the size of the sample, not on that of the table.
    """
    left, sample_sizes = total, {}
    for position, table in enumerate(sorted(tables, key=lambda table: table.row_count)):
        fair = left // (len(tables) - position)
        # The count can be old, and 0 although there are rows by now.
        share = max(1, min(fair, max(table.row_count, 1000), _rows_that_fit(table)))
        sample_sizes[table.name] = share
        left -= min(share, table.row_count) if table.is_row_count_exact else share
    return sample_sizes


def _rows_that_fit(table: SourceTable) -> int:
    if not table.data_bytes or not table.row_count:
        return SAMPLE_ROWS
    return max(1000, SAMPLE_BYTES_MAX * table.row_count // table.data_bytes)
