"""What a package says of a process beside the server that answers for further AWS services.

It does so by an entry point of the group `partita.companions` that names a `CompanionService`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from partita.settings import Settings

if TYPE_CHECKING:
    from partita.server.security.rights.needs import Rights


class AnsweredService(NamedTuple):
    """One AWS service that a companion answers for."""

    name: str
    """What requests are signed for, and actions begin with."""
    title: str
    target: str
    """How its X-Amz-Target begins; its name where its protocol is REST."""
    rights: Callable[[], Mapping[str, Rights]]
    """Which rights its operations need. Called only where requests must be signed."""
    tables: Sequence[str]
    """Its own, in which it may do everything."""
    actions: Sequence[str]
    """What else it may do by itself, for the settings: what users create has a role for that."""


@dataclass(frozen=True, kw_only=True)
class CompanionService:
    """A process beside the server, and the services that it answers for."""

    name: str
    module: str
    """What `python -m` runs."""
    services: Sequence[AnsweredService]
    is_rest: bool = False
    """Whether the protocol of its services is REST; one companion answers for all of these."""
    table: str
    """It is started with the server if this table exists."""
    is_called: Callable[[Settings], bool] = lambda settings: False
    """Whether it must be started with the server in any case."""
    check_settings: Callable[[Settings], None] = lambda settings: None
    """Raises for settings with which it could not start."""
    seals_objects: bool = False
    """Whether it writes objects that are encrypted as the server's own are."""
