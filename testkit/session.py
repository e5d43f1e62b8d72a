"""Settings of all test sessions: no deadline for examples, a bytecode cache, slow files first."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

QUICK = ("unit", "storage", "wire", "compat", "capacity")
"""Folders whose files take only seconds each."""

# The time and size of generated examples vary by chance, and are no reason to fail.
settings.register_profile("patient", deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("patient")

# Tests start hundreds of processes; with a bytecode cache, modules are compiled once for all.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts slow files first: if one came last, the other workers would wait for it."""
    items.sort(key=lambda item: _folder(item) in QUICK)


def _folder(item: pytest.Item) -> str:
    """Returns the folder of a test directly below its package's `tests`."""
    parts = item.path.parts
    return parts[parts.index("tests") + 1]
