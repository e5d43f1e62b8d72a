"""Invents texts for a column from its name alone."""

from __future__ import annotations

import re

from partita_migrate.understanding.schema.name_words import name_parts, singular

DATE = "2026-11-0{number}"


def made_up(column: str, number: int) -> str:
    """Returns a text that a column with this name could hold."""
    parts = name_parts(column)
    if set(parts) & {"date", "day", "at", "time", "stmp", "timestamp", "on"}:
        return DATE.format(number=number % 9 + 1)
    if parts[-1] in ("id", "key", "code") and len(parts) > 1:
        return f"{parts[-2]}{number}"
    return f"{singular(re.sub('[^A-Za-z0-9]', '', column)) or 'value'}{number}"
