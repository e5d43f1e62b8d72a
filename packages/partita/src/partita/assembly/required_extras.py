"""Imports that only some options of `partita serve` need."""

from __future__ import annotations

from typing import Any

from partita.installation.optional_packages import packages_required


def require_postgresql() -> None:
    with packages_required("partita[postgresql]"):
        import psycopg_pool  # noqa: F401


def key_source(text: str | None) -> Any:
    if not text:
        return None
    from partita.database.storage.sealing.master_keys import KeySource

    return KeySource(text)
