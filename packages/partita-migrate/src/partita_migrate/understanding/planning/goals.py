"""The section `[goals]` of `migration.toml`: the purpose of a migration, and its circumstances."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from partita_migrate.workspace.migration_folder import Positive

Aim = Literal["performance", "costs", "load", "operations"]

AIMS: dict[Aim, str] = {
    "performance": "Increase the performance of the application",
    "costs": "Lower costs",
    "load": "Reduce the load on the relational database",
    "operations": "Reduce operational overhead",
}
"""The whitepaper's four goals, in its order."""


class Goals(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The aims of the migration and the constraints on its strategy."""

    aims: list[Aim] = field(default_factory=lambda: list(AIMS))
    notes: str = ""
    monthly_cost: Positive | None = None
    """The monthly cost of the relational database, in the currency of the prices. The verdict
    compares with it."""
    writes_continue: bool = True
    """True if the application writes to the source before and during the migration."""
    cutover: Literal["parallel", "full"] = "parallel"
    """`parallel` runs both databases for a while; `full` changes from one to the other."""
    parallel_days: Positive = 14
    bandwidth_mbit_per_second: Positive = 100
    transfer_hours_max: Positive = 8
    recovery_minutes_max: Positive = 60
    """How long the application may be without its data if the migration fails."""
