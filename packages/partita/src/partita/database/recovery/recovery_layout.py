"""The storage keys of recovery records; no other module builds them.

    0e 00                                            the stamp of the last commit that had one
    0e kind, id                                      a backup, a base, an export, an import, ...

All other key spaces belong to the layout modules of tables, change log and event log. Records
outlive their tables.
"""

from __future__ import annotations

from typing import Final

RECORDS: Final = b"\x0e"


def record_key(kind: str, record_id: str) -> bytes:
    return RECORDS + kind.encode() + b"\x00" + record_id.encode()


PROGRESS: Final = (record_key("bulk", ""), record_key("import", ""))
"""Prefixes of records that are rewritten while their operation runs, to save its progress."""
