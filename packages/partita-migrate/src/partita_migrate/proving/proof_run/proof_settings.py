"""The section `[test]` of `migration.toml`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class ProofSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the tests."""

    load_calls: Annotated[int, Meta(ge=0)] = 2000
    """Calls with which the stated rates are tried, and again the peaks; 0 skips both."""
    recovery: bool = True
    """Whether a table is backed up, lost and restored."""
