"""Descriptions of companions, by which other packages add AWS services to the server.

A package has an entry point in the group `partita.companions` that names a `CompanionService`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from partita.foundation.server_settings import ServerSettings

if TYPE_CHECKING:
    from partita.server.security.rights.requested_rights import Rights


class AnsweredService(NamedTuple):
    """One AWS service that a companion answers for."""

    name: str
    """The service name in signatures, and the prefix of its actions in policies."""
    title: str
    target: str
    """The prefix of its X-Amz-Target header; for a REST protocol, its name."""
    rights: Callable[[], Mapping[str, Rights]]
    """Returns the rights that its operations need. Only called with `--auth`."""
    tables: Sequence[str]
    """The service's own tables, in which it may do everything."""
    actions: Sequence[str]
    """Further actions that the service may perform itself, for resources in the settings file.
    Resources that users create act with a role instead."""


@dataclass(frozen=True, kw_only=True)
class CompanionService:
    """A process beside the server, and the services that it answers for."""

    name: str
    module: str
    """The module that `python -m` runs."""
    services: Sequence[AnsweredService]
    is_rest: bool = False
    """True if the protocol of its services is REST. One companion answers for all REST services."""
    table: str
    """The companion starts together with the server if this table exists."""
    is_called: Callable[[ServerSettings], bool] = lambda settings: False
    """True if the companion must start together with the server in any case."""
    check_settings: Callable[[ServerSettings], None] = lambda settings: None
    """Raises for settings with which the companion could not start."""
    seals_objects: bool = False
    """True if it writes objects that are encrypted like the server's own."""
