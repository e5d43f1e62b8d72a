"""The modes of a server's console, `--console on|read-only|off`, and the path of its pages."""

from __future__ import annotations

from typing import Final

ON: Final = "on"
READ_ONLY: Final = "read-only"
OFF: Final = "off"
PATH: Final = b"/console"
