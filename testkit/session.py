"""For all tests: property tests take their time, processes start fast, slow files go first."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

QUICK = ("unit", "storage", "wire", "compat", "capacity")
"""Folders of many files that take seconds each."""

# How long examples take and how large they become is chance, and no reason to fail.
settings.register_profile("patient", deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("patient")

# Tests start hundreds of processes: what they import is translated once, not in each of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Workers take files in this order: with a slow one last, the others would wait for it."""
    items.sort(key=lambda item: _folder(item) in QUICK)


def _folder(item: pytest.Item) -> str:
    """The one in the folder of its package's tests."""
    parts = item.path.parts
    return parts[parts.index("tests") + 1]
