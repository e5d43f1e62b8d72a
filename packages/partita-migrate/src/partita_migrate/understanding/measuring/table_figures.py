"""Sums up the figures of one table, row by row, in memory that does not grow with the values.

For each sampled row it keeps eight bytes for its size and eight for each candidate key (a hash,
because only equality matters). Everything else is sums and extremes.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any

from partita.database.item.item_sizes import string_size
from partita_migrate.understanding.analysis import ColumnFigures
from partita_migrate.understanding.measuring.key_skew import KeyCounts
from partita_migrate.understanding.measuring.table_sampling import SampleDraw
from partita_migrate.understanding.schema.inventory import ColumnKind
from partita_migrate.understanding.sources.column_reading import ColumnReading

KEY_HASHES_MAX = 16_000_000
"""The limit for all candidate keys of a table together: 128 MB. Beyond it, keys look at fewer
rows."""

SHOWN_KINDS: frozenset[ColumnKind] = frozenset(
    ("integer", "decimal", "float", "boolean", "date", "time", "datetime", "enum")
)
"""Kinds whose values are shown. A text can be a name, an address or a secret."""


@dataclass
class ColumnSums:
    """The sums of one column, over all draws."""

    reading: ColumnReading
    values: int = 0
    bytes_total: int = 0
    bytes_max: int = 0
    least: Any = None
    most: Any = None

    def figures(self, drawn: int) -> ColumnFigures:
        return ColumnFigures(
            name=self.reading.column.name,
            null_share=round(1 - self.values / drawn, 6) if drawn else 0.0,
            bytes_mean=round(self.bytes_total / self.values, 1) if self.values else 0.0,
            bytes_max=self.bytes_max,
            least=self._shown(self.least),
            most=self._shown(self.most),
        )

    def _shown(self, value: Any) -> str | None:
        if value is None or self.reading.convert is None:
            return None
        converted = self.reading.convert(value)
        return None if converted is None else str(next(iter(converted.values())))

    def extend_range(self, value: Any) -> None:
        # NaN compares as false with everything, even with itself.
        if self.reading.column.kind not in SHOWN_KINDS or value != value:
            return
        try:
            if self.least is None or value < self.least:
                self.least = value
            if self.most is None or value > self.most:
                self.most = value
        except TypeError:
            # SQLite stores texts among numbers. The range is that of the type that came first.
            return


@dataclass
class TableFigures:
    """Collects what is kept of the rows of one sample."""

    readings: Sequence[ColumnReading]
    keys: Sequence[KeyCounts]
    expected: int
    """The number of expected rows, which decides the share that keys look at."""
    moments_of: str | None = None
    """The column with the time when a row was made."""
    numbers_of: str | None = None
    """The column with the number that the database gave to a row."""
    seed: int = 0
    sizes: array[int] = field(default_factory=lambda: array("Q"))
    moments: array[float] = field(default_factory=lambda: array("d"))
    numbers: array[float] = field(default_factory=lambda: array("d"))
    """The numbers of the same rows as `moments`."""

    def __post_init__(self) -> None:
        self.columns = [ColumnSums(reading) for reading in self.readings]
        self._names = [string_size(reading.column.name) for reading in self.readings]
        positions = {reading.column.name: i for i, reading in enumerate(self.readings)}
        self._key_positions = [[positions[name] for name in key.columns] for key in self.keys]
        self._moment_position = positions.get(self.moments_of or "")
        self._number_position = positions.get(self.numbers_of or "")
        self._random = Random(self.seed)
        # Bounds the memory for distinct values: of larger samples only a random part is counted.
        hashes = max(1, len(self.keys) * self.expected)
        self._key_share = min(1.0, KEY_HASHES_MAX / hashes)

    def add(self, draws: Sequence[SampleDraw]) -> None:
        for row, times, is_repeat in draws:
            contents = self._measure(row, times)
            # A sample may draw a row twice; its size counts again, but its values are already
            # known.
            if is_repeat:
                continue
            if self._moment_position is not None:
                self._note_moment(row, self._moment_position)
            if self._key_share == 1.0 or self._random.random() < self._key_share:
                for key, positions in zip(self.keys, self._key_positions, strict=True):
                    key.add([contents[position] for position in positions])

    def _measure(self, row: Sequence[Any], times: int) -> list[Any]:
        """Counts the row's bytes. Returns the contents of its values, None for NULL."""
        size = 0
        contents: list[Any] = [None] * len(row)
        for position, (column, value) in enumerate(zip(self.columns, row, strict=True)):
            if value is None:
                continue
            bytes_of_value, contents[position] = column.reading.measure(value)
            size += self._names[position] + bytes_of_value
            column.values += times
            column.bytes_total += bytes_of_value * times
            if bytes_of_value > column.bytes_max:
                column.bytes_max = bytes_of_value
            column.extend_range(value)
        self.sizes.extend([size] * times)
        return contents

    def _note_moment(self, row: Sequence[Any], position: int) -> None:
        moment = moment_of(row[position])
        if moment is None:
            return
        self.moments.append(moment)
        if self._number_position is not None:
            self.numbers.append(float(row[self._number_position]))


def moment_of(value: Any) -> float | None:
    """Returns the seconds since 1970 of a date, a date and time, or the text of one."""
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        return float((value.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds())
    except (AttributeError, ValueError):
        return None
