"""Where the records of recovery lie in the ordered map: the only module that builds their keys.

    0e 00                                            the stamp of the last commit that had one
    0e kind, id                                      a backup, a base, an export, an import, ...

All other spaces belong to `tables/layout.py`, `changes/layout.py` and `events/layout.py`. Records
survive their tables.
"""

from __future__ import annotations

from typing import Final

RECORDS: Final = b"\x0e"


def record_key(kind: str, record_id: str) -> bytes:
    return RECORDS + kind.encode() + b"\x00" + record_id.encode()


PROGRESS: Final = (record_key("bulk", ""), record_key("import", ""))
"""Records that are written again and again while they are worked on."""
