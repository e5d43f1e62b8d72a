"""Makes up texts that replace the values of a column, from the column's name alone."""

from __future__ import annotations

import re

from partita_migrate.understanding.schema.name_words import name_parts, singular

DATE = "2026-11-0{number}"


def made_up(column: str, number: int) -> str:
    """Returns a plausible value: `city3` for a column `city`, a date for `created_at`."""
    parts = name_parts(column)
    if set(parts) & {"date", "day", "at", "time", "stmp", "timestamp", "on"}:
        return DATE.format(number=number % 9 + 1)
    if parts[-1] in ("id", "key", "code") and len(parts) > 1:
        return f"{parts[-2]}{number}"
    return f"{singular(re.sub('[^A-Za-z0-9]', '', column)) or 'value'}{number}"
