"""The other packages of this house: what they add to `partita`, by their entry points.

A package names its commands in the group `partita.commands`, and the services that it answers for
beside a server in the group `partita.companions`. Nothing of it is imported before it is used.
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
    package: str
    """Which `pip` installs."""
    help: str
    """What the list of commands says of it, whether it is installed or not."""


PACKAGED = {
    "metrics": PackagedCommand(
        "partita-metric-catalogue", "Run the metric catalogue, or migrate it."
    ),
    "migrate": PackagedCommand("partita-migrate", "Take a relational database to DynamoDB."),
    "pagehits": PackagedCommand(
        "partita-page-hit-counter", "Count page visits, and list the most popular."
    ),
    "workflow": PackagedCommand(SERVICES, "Validate, run and draw state machines."),
}
"""The commands of the packages of this house."""


@cache
def entry_points(group: str) -> dict[str, EntryPoint]:
    """What installed packages add, by name."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=group)}


def packaged_help(name: str) -> str | None:
    """What the list of commands says of a command of another package; None if there is none."""
    point = entry_points(COMMANDS).get(name)
    known = PACKAGED.get(name)
    if known is not None:
        return known.help if point is not None else f"{known.help[:-1]} (not installed)."
    if point is None or point.dist is None:
        return None
    return f"A command of the package {point.dist.name}."


def load_command(name: str) -> Any:
    """A command of another package, or an error that says how to install it."""
    point = entry_points(COMMANDS).get(name)
    if point is None:
        package = PACKAGED[name].package
        raise PartitaError(
            f"{package}, which has the command {name}, is not installed; to install it: "
            f"{install_command(package)}"
        )
    return point.load()
