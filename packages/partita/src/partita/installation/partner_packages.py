"""Other packages that add commands and services to `partita`, by entry points.

A package lists its commands in the group `partita.commands`, and the services that it provides
beside a server in the group `partita.companions`. Nothing is imported before it is used.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from partita.errors import PartitaError
from partita.installation.optional_packages import install_command

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS, COMPANIONS = "partita.commands", "partita.companions"
SERVICES = "partita-services"


class PackagedCommand(NamedTuple):
    """A command that another package of this repository provides."""

    package: str
    """The name under which `pip` installs it."""
    help: str
    """Its line in `partita --help`, which lists it whether it is installed or not."""


PACKAGED = {
    "metrics": PackagedCommand(
        "partita-metric-catalogue", "Run the metric catalogue, or migrate it."
    ),
    "migrate": PackagedCommand("partita-migrate", "Move a relational database to DynamoDB."),
    "pagehits": PackagedCommand(
        "partita-page-hit-counter", "Count page visits, and list the most popular."
    ),
    "workflow": PackagedCommand(SERVICES, "Validate, run and draw state machines."),
}
"""The commands of the other packages in this repository."""


@cache
def entry_points(group: str) -> dict[str, EntryPoint]:
    """Returns the entry points of all installed packages in a group, by name."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=group)}


def packaged_help(name: str) -> str | None:
    """Returns the line of `partita --help` for a command of another package, or None."""
    point = entry_points(COMMANDS).get(name)
    packaged = PACKAGED.get(name)
    if packaged is not None:
        return packaged.help if point is not None else f"{packaged.help[:-1]} (not installed)."
    if point is None or point.dist is None:
        return None
    return f"A command of the package {point.dist.name}."


def load_command(name: str) -> Any:
    """Loads a command of another package; raises with the command that installs it."""
    point = entry_points(COMMANDS).get(name)
    if point is None:
        package = PACKAGED[name].package
        raise PartitaError(
            f"The command {name} needs {package}, which is not installed; to install it: "
            f"{install_command(package)}"
        )
    return point.load()
