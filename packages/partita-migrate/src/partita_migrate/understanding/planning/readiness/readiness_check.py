"""The result of one readiness check: what was found, and what to change."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Purpose = Literal["backup", "changes", "statistics"]
"""Taking a backup, following changes, or keeping statistics of statements."""

PRIVILEGES = "the user's set of privileges"


class ServerCheck(Struct, frozen=True, kw_only=True, omit_defaults=True):
    purpose: Purpose
    setting: str
    found: str
    is_ready: bool
    change: str = ""
    """What to change, as a sentence, if the check failed."""

    @property
    def sentence(self) -> str:
        return f"{self.setting} is {self.found}. {self.change}".strip()


def ready(purpose: Purpose, setting: str, found: str) -> ServerCheck:
    return ServerCheck(purpose=purpose, setting=setting, found=found, is_ready=True)


def not_ready(purpose: Purpose, setting: str, found: str, change: str) -> ServerCheck:
    return ServerCheck(purpose=purpose, setting=setting, found=found, is_ready=False, change=change)


def rights(purpose: Purpose, missing: list[str], change: str) -> ServerCheck:
    """Returns the check of the connection's user; another user may take the backup."""
    if not missing:
        return ready(purpose, PRIVILEGES, "sufficient")
    return not_ready(purpose, PRIVILEGES, f"missing {', '.join(missing)}", change)
