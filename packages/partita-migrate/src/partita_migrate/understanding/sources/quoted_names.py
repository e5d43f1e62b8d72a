"""Names inside the text of a statement."""

from __future__ import annotations

from sqlalchemy import Connection


def quoted(connection: Connection, name: str) -> str:
    """A name as `sqlalchemy.text` takes it, whatever it is made of.

    There a colon begins a parameter, and a percent sign is doubled for the drivers that need it,
    which the dialect's own quoting would do once more.
    """
    preparer = connection.dialect.identifier_preparer
    end = preparer.final_quote
    inside = name.replace(end, end + end).replace(":", "\\:")
    return f"{preparer.initial_quote}{inside}{end}"
