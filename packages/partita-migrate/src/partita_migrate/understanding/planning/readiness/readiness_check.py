"""One check of a server: what was found, and what to change."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Purpose = Literal["backup", "changes", "statistics"]
"""Taking a backup, following changes, and keeping statement statistics."""


class ServerCheck(Struct, frozen=True, kw_only=True, omit_defaults=True):
    purpose: Purpose
    setting: str
    found: str
    is_ready: bool
    change: str = ""
    """A sentence that says what to change, if the server is not ready."""

    @property
    def sentence(self) -> str:
        return f"{self.setting} is {self.found}. {self.change}".strip()


def ready(purpose: Purpose, setting: str, found: str) -> ServerCheck:
    return ServerCheck(purpose=purpose, setting=setting, found=found, is_ready=True)


def not_ready(purpose: Purpose, setting: str, found: str, change: str) -> ServerCheck:
    return ServerCheck(purpose=purpose, setting=setting, found=found, is_ready=False, change=change)


def rights(purpose: Purpose, missing: list[str], change: str) -> ServerCheck:
    """Checks the rights of the connection's user; another user can take the backup."""
    if not missing:
        return ready(purpose, "what the user may do", "enough")
    return not_ready(
        purpose, "what the user may do", f"too little, without {', '.join(missing)}", change
    )
