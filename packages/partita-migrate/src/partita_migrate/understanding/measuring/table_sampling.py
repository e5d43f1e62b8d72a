"""Draws a random sample of a table's rows, without reading the others where possible.

The whitepaper asks for simple random sampling with replacement. It is done by guessing: keys are
drawn evenly between the least and the greatest, and those that exist form the sample, whatever the
gaps. That needs an integer key whose gaps are not too many. Otherwise PostgreSQL returns whole
pages (TABLESAMPLE SYSTEM), and MySQL and SQLite scan the table once and take each row with the same
probability. A table with no more rows than its share of the sample is read completely.
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
"""Sample size for the whole database, as in the whitepaper's example."""
SAMPLE_BYTES_MAX = 2 * 1024**3
"""Limit for one table, by its mean row size: rows of a megabyte are not read a million times."""
GUESSES_PER_ROW_MAX = 50
"""Keys with more gaps than this are not guessed."""
KEYS_PER_STATEMENT = 1000
KEYS_PER_ROUND_MAX = 500_000
ALIAS = "partita_sample"
"""The alias by which mining recognizes Partita's own statements."""
ROWID = "rowid"
"""SQLite's implicit key of a table without an integer key."""


class SampleDraw(NamedTuple):
    row: tuple[Any, ...]
    times: int = 1
    """How often the row was drawn in this round."""
    is_repeat: bool = False
    """True for a row of an earlier round. It counts again for sizes, but not as a new value."""


class SamplingMethod(Enum):
    """Sampling methods; the values are the words that the analysis uses."""

    EVERY_ROW = "every row was read"
    RANDOM_KEYS = "rows drawn at random with replacement, by random values of {key}"
    RANDOM_PAGES = (
        "rows of pages drawn at random (TABLESAMPLE SYSTEM), because the table has no integer key"
        " with few gaps; rows of one page may be alike, so the true intervals are wider"
    )
    ONE_PASS = (
        "rows taken with equal probability in one pass over the table, because it has no integer"
        " key with few gaps"
    )


@dataclass
class RowSample:
    """The sample of one table. The figures about the sampling are complete when `draws`
    has ended."""

    source: SourceDatabase
    table: SourceTable
    readings: Sequence[ColumnReading]
    size: int
    """The desired number of rows."""
    seed: int
    method: SamplingMethod = SamplingMethod.EVERY_ROW
    key: str | None = None
    drawn: int = 0
    rows_in_table: float = 0
    """Exact after reading every row; otherwise estimated from the sampling itself."""

    @property
    def is_exact(self) -> bool:
        return self.method is SamplingMethod.EVERY_ROW

    def draws(self) -> Iterator[list[SampleDraw]]:
        """Yields chunks of rows, by the best method for this table."""
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
        """Returns the row count, after checking that it is not out of date or underestimated."""
        next_row = f"SELECT 1 FROM {self._from} LIMIT 1 OFFSET {self.size}"
        if not self.source.rows(next_row):
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
        """Returns an integer key and its bounds, if its gaps are few enough for guessing."""
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
        if self.source.dialect == "sqlite" and ROWID not in kinds:
            yield ROWID

    def _random_keys(
        self, name: str, least: int, greatest: int, row_count: int
    ) -> Iterator[list[SampleDraw]]:
        """Draws keys until enough of them exist. Each row has the same chance in each draw."""
        self.method, self.key = SamplingMethod.RANDOM_KEYS, name
        random = Random(f"{self.seed} {self.table.name}")
        span = greatest - least + 1
        hit_rate = min(1.0, row_count / span)
        # A million keys take 8 MB in an array, and many times that in a set.
        found_offsets: array[int] = array("Q")
        guesses = 0
        # Gives up when keys are much sparser than the bounds and the row count promised.
        while self.drawn < self.size and guesses < 2 * GUESSES_PER_ROW_MAX * self.size:
            # Slightly more than expected, so that a second round is rarely needed.
            guess_count = int((self.size - self.drawn) / hit_rate * 1.01) + 10
            guess_count = min(guess_count, KEYS_PER_ROUND_MAX)
            # Sorted keys share pages of the index.
            keys = Counter(random.randint(least, greatest) for _ in range(guess_count))
            guesses += guess_count
            earlier_offsets = array("Q", sorted(found_offsets))
            for numbers, draws in self._rows_of(name, dict(sorted(keys.items()))):
                # Offsets from the least key fit into 64 bits; unsigned keys themselves may not fit
                # 63.
                offsets = [number - least for number in numbers]
                found_offsets.extend(offsets)
                yield [
                    draw._replace(is_repeat=True) if _is_among(earlier_offsets, offset) else draw
                    for offset, draw in zip(offsets, draws, strict=True)
                ]
            hit_rate = max(self.drawn, 1) / guesses
        self.rows_in_table = span * self.drawn / guesses

    def _rows_of(
        self, name: str, keys: Mapping[int, int]
    ) -> Iterator[tuple[list[int], list[SampleDraw]]]:
        """Yields the existing rows, each with the number of times that its key was drawn."""
        key = self.source.quote(name) if name != ROWID else ROWID
        distinct_keys = list(keys)
        for start in range(0, len(distinct_keys), KEYS_PER_STATEMENT):
            key_list = ", ".join(map(str, distinct_keys[start : start + KEYS_PER_STATEMENT]))
            rows = self.source.rows(
                f"SELECT {key}, {self._select} FROM {self._from} WHERE {key} IN ({key_list})"
            )
            draws = [SampleDraw(row[1:], keys[row[0]]) for row in rows]
            self.drawn += sum(draw.times for draw in draws)
            yield [row[0] for row in rows], draws

    def _a_part(self, method: SamplingMethod, row_count: int) -> Iterator[list[SampleDraw]]:
        """Takes each row, or each page of rows, with the same probability."""
        self.method = method
        probability = min(1.0, self.size / row_count)
        while True:
            statement = f"SELECT {self._select} FROM {self._from} {self._chance(probability)}"
            for chunk in self.source.stream(statement):
                self.drawn += len(chunk)
                yield [SampleDraw(row) for row in chunk]
            if self.drawn or probability == 1.0:
                break
            # With few pages, it may happen that none was taken.
            probability = min(1.0, probability * 10)
        self.rows_in_table = self.drawn / probability

    def _chance(self, probability: float) -> str:
        """Returns the clause that makes the source return a random part of the rows."""
        # SYSTEM reads only the chosen pages; BERNOULLI would read all of them.
        if self.source.dialect == "postgresql":
            return f"TABLESAMPLE SYSTEM ({probability * 100:.6f}) REPEATABLE ({self.seed})"
        if self.source.dialect == "sqlite":
            # RANDOM() is a 64-bit integer and takes no seed.
            return f"WHERE ABS(RANDOM() % 1000000) < {probability * 1_000_000:.0f}"
        return f"WHERE RAND({self.seed}) < {probability:.9f}"


def _is_among(ordered: array[int], number: int) -> bool:
    position = bisect_left(ordered, number)
    return position < len(ordered) and ordered[position] == number


def shares(tables: Sequence[SourceTable], total: int) -> dict[str, int]:
    """Returns how many rows to sample of each table: equal shares, and what small tables do not use
    goes to the others.

    The precision of a percentile depends on the size of the sample, not of the table.
    """
    remaining, sizes = total, {}
    for position, table in enumerate(sorted(tables, key=lambda table: table.row_count)):
        fair = remaining // (len(tables) - position)
        # The row count may be out of date, and say 0 where there are rows by now.
        sample_size = max(1, min(fair, max(table.row_count, 1000), _rows_that_fit(table)))
        sizes[table.name] = sample_size
        remaining -= min(sample_size, table.row_count) if table.is_row_count_exact else sample_size
    return sizes


def _rows_that_fit(table: SourceTable) -> int:
    if not table.data_bytes or not table.row_count:
        return SAMPLE_ROWS
    return max(1000, SAMPLE_BYTES_MAX * table.row_count // table.data_bytes)
