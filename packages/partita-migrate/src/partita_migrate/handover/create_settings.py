"""What people decide about the tables in `[create]` of `migration.toml`."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

Capacity = Literal["estimate", "on-demand", "provisioned", "auto scaling"]
Stream = Literal["NEW_AND_OLD_IMAGES", "NEW_IMAGE", "OLD_IMAGE", "KEYS_ONLY", "none"]
TableClass = Literal["estimate", "STANDARD", "STANDARD_INFREQUENT_ACCESS"]


class CreateSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    capacity: Capacity = "estimate"
    """`estimate`: as it costs least; `provisioned`: the units of the stated rates; `auto scaling`:
    those of the average load, up to twice the stated rates."""
    table_class: TableClass = "estimate"
    stream: Stream = "NEW_AND_OLD_IMAGES"
    """Of every table: the way back reads it. A stream that nobody reads costs nothing."""
    tags: dict[str, str] = field(default_factory=dict)
    """Beside `migration`, the name of the design."""
    deletion_protection: bool = False
