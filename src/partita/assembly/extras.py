"""What some options need is imported when they are given."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from partita.optional_packages import packages_required


def require_postgresql() -> None:
    with packages_required("postgresql"):
        import_module("psycopg_pool")


def key_source(text: str | None) -> Any:
    if not text:
        return None
    from partita.database.storage.sealing.master_keys import KeySource

    return KeySource(text)
