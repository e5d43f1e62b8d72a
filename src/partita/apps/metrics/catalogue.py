"""What every store of the catalogue can do. The HTTP API knows nothing else of it."""

from __future__ import annotations

from typing import Protocol

from partita.apps.metrics.metric import Metric, NewDimension, NewGroup, NewMetric, Version
from partita.apps.metrics.rules import Revision


class Catalogue(Protocol):
    async def add_dimension(self, new: NewDimension) -> None: ...

    async def list_dimensions(self, limit: int, after: str) -> list[str]:
        """Names behind `after`, in order."""
        ...

    async def add_group(self, new: NewGroup) -> None: ...

    async def add(self, new: NewMetric, user: str) -> Metric: ...

    async def revise(self, name: str, revision: Revision, expected: int | None) -> Metric:
        """One version more. Changed when the latest is not the `expected` one, if that is given."""
        ...

    async def get(self, name: str) -> Metric: ...

    async def get_version(self, name: str, version: int) -> Version: ...

    async def list_versions(self, name: str) -> list[Version]:
        """From version 1 on."""
        ...

    async def list_metrics(self, limit: int, after: str) -> list[Metric]:
        """Behind the name `after`, in the order of names."""
        ...

    async def consumers(self, name: str) -> list[str]:
        """The hybrid metrics that consume a metric."""
        ...
