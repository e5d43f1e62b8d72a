"""What the pages may do, and where they are."""

from __future__ import annotations

from typing import Final

ON: Final = "on"
READ_ONLY: Final = "read-only"
OFF: Final = "off"
PATH: Final = b"/console"
