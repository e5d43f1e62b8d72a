"""What some options need is imported when they are given."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from partita.errors import PartitaError


def require_postgresql() -> None:
    try:
        import_module("psycopg_pool")
    except ImportError as error:
        raise PartitaError(
            f"{error.name} is not installed; pip install 'partita[postgresql]' has it."
        ) from error


def key_source(text: str | None) -> Any:
    if not text:
        return None
    from partita.database.storage.sealing.master_keys import KeySource

    return KeySource(text)
