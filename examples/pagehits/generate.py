"""Prints the schema and rows of a page hit counter as SQL. The same every time."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

HERE = Path(__file__).parent
ASSETS = 600
SECTIONS = 40
WINDOWS = {
    "page_hit_five_minutes": (timedelta(minutes=5), 12, 300),
    "page_hit_hour": (timedelta(hours=1), 24, 3_000),
    "page_hit_day": (timedelta(days=1), 7, 13_000),
}
"""For each table: the length of a window, how many are kept, and the hits of the first asset."""
START = datetime(2020, 5, 6, 11, tzinfo=UTC)


def statements(seed: int = 1) -> Iterator[str]:
    chance = random.Random(seed)
    yield (HERE / "schema.sql").read_text()
    assets = [
        (
            100_000_000 + number,
            chance.choice(("article", "recipe", "advertorial")),
            chance.randint(1, SECTIONS),
            chance.choice(("free", "paid", "metered")),
        )
        for number in range(ASSETS)
    ]
    for table, (length, count, most) in WINDOWS.items():
        rows = []
        for window in range(count):
            stamp = START - length * window
            for rank, (asset, kind, section, paid) in enumerate(chance.sample(assets, 500)):
                hits = max(1, most // (rank + 1))
                rows.append(f"({hits}, {asset}, '{kind}', {section}, '{stamp:%F %T%z}', '{paid}')")
        columns = "hit_amount, asset_id, resource_type, section_id, hit_stmp, paid_type"
        yield f"INSERT INTO {table} ({columns}) VALUES\n" + ",\n".join(rows) + ";\n"


if __name__ == "__main__":
    sys.stdout.writelines(statements())
