"""Quotes names inside the text of a statement."""

from __future__ import annotations

from sqlalchemy import Connection


def quoted(connection: Connection, name: str) -> str:
    """Returns a name in the form that `sqlalchemy.text` takes, whatever characters it has.

    In such a text, a colon begins a parameter. Percent signs must not be doubled here, because
    `text` does that itself for the drivers that need it.
    """
    preparer = connection.dialect.identifier_preparer
    end = preparer.final_quote
    inside = name.replace(end, end + end).replace(":", "\\:")
    return f"{preparer.initial_quote}{inside}{end}"
