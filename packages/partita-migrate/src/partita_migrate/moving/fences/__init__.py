"""The fence in the source, one module for each kind."""

from __future__ import annotations

import importlib

from partita_migrate.moving.fences.fence import Fence
from partita_migrate.moving.logs.origin import Origin

MODULES = {"postgresql": "postgresql", "mysql": "mariadb", "sqlite": "sqlite"}


def fence_of(origin: Origin) -> Fence:
    """Drivers are imported when they are needed."""
    module = importlib.import_module(f"{__name__}.{MODULES[origin.family]}")
    found: Fence = module.Fence(origin)
    return found
