"""One check of a server: what was found, and what to change."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Purpose = Literal["backup", "changes", "statistics"]
"""To take a backup; to follow what is written; to keep the statements that are run."""


class ServerCheck(Struct, frozen=True, kw_only=True, omit_defaults=True):
    purpose: Purpose
    setting: str
    found: str
    is_ready: bool
    change: str = ""
    """A sentence, where it is not ready."""

    @property
    def sentence(self) -> str:
        return f"{self.setting} is {self.found}. {self.change}".strip()


def ready(purpose: Purpose, setting: str, found: str) -> ServerCheck:
    return ServerCheck(purpose=purpose, setting=setting, found=found, is_ready=True)


def not_ready(purpose: Purpose, setting: str, found: str, change: str) -> ServerCheck:
    return ServerCheck(purpose=purpose, setting=setting, found=found, is_ready=False, change=change)


def rights(purpose: Purpose, missing: list[str], change: str) -> ServerCheck:
    """Of the user of the connection; another one may take the backup."""
    if not missing:
        return ready(purpose, "what the user may do", "enough")
    return not_ready(
        purpose, "what the user may do", f"too little, without {', '.join(missing)}", change
    )
