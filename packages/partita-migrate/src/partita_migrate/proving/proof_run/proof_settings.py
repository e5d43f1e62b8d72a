"""What people decide about the tests in `[test]` of `migration.toml`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class ProofSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    load_calls: Annotated[int, Meta(ge=0)] = 2000
    """Calls that the stated rates are tried with, and again the peaks; 0 leaves them out."""
    recovery: bool = True
    """Whether a table is backed up, lost and restored."""
