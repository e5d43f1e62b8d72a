"""The section `[create]` of `migration.toml`: how tables are created."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

Capacity = Literal["estimate", "on-demand", "provisioned", "auto scaling"]
Stream = Literal["NEW_AND_OLD_IMAGES", "NEW_IMAGE", "OLD_IMAGE", "KEYS_ONLY", "none"]
TableClass = Literal["estimate", "STANDARD", "STANDARD_INFREQUENT_ACCESS"]


class CreateSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings for new tables."""

    capacity: Capacity = "estimate"
    """`estimate` takes the cheapest mode, `provisioned` the units of the stated rates, and `auto
    scaling` the units of the average load with room for twice the stated rates."""
    table_class: TableClass = "estimate"
    stream: Stream = "NEW_AND_OLD_IMAGES"
    """The stream of every table, which the way back reads. A stream without readers is free."""
    tags: dict[str, str] = field(default_factory=dict)
    """Tags beside `migration`, which holds the name of the design."""
    deletion_protection: bool = False
