"""Quotes names inside the text of a statement."""

from __future__ import annotations

from sqlalchemy import Connection


def quoted(connection: Connection, name: str) -> str:
    """Quotes a name for `sqlalchemy.text`, whatever characters it contains.

    In `text` a colon begins a parameter, so it is escaped. `text` also doubles percent signs for
    the drivers that need it; the dialect's own quoting would double them a second time.
    """
    preparer = connection.dialect.identifier_preparer
    end = preparer.final_quote
    inside = name.replace(end, end + end).replace(":", "\\:")
    return f"{preparer.initial_quote}{inside}{end}"
