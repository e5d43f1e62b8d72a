"""The interface of every store of the catalogue. The HTTP API depends only on this."""

from __future__ import annotations

from typing import Protocol

from metric_catalogue.metrics.metric import Metric, MetricVersion, NewDimension, NewGroup, NewMetric
from metric_catalogue.metrics.metric_rules import Revision


class Catalogue(Protocol):
    async def add_dimension(self, new: NewDimension) -> None: ...

    async def list_dimensions(self, limit: int, after: str) -> list[str]:
        """Returns the names that sort after `after`, in order."""
        ...

    async def add_group(self, new: NewGroup) -> None: ...

    async def add(self, new: NewMetric, user: str) -> Metric: ...

    async def revise(self, name: str, revision: Revision, expected: int | None) -> Metric:
        """Adds a version. Raises VersionChanged when `expected` is given and is not the latest."""
        ...

    async def delete(self, name: str, expected: int | None) -> None:
        """Deletes a metric with all its versions. Raises MetricConflict while other metrics depend
        on it, and VersionChanged when `expected` is given and is not the latest version."""
        ...

    async def get(self, name: str) -> Metric: ...

    async def get_version(self, name: str, version: int) -> MetricVersion: ...

    async def list_versions(self, name: str) -> list[MetricVersion]:
        """Returns all versions, from version 1 on."""
        ...

    async def list_metrics(self, limit: int, after: str) -> list[Metric]:
        """Returns the metrics whose names sort after `after`, in order of names."""
        ...

    async def consumers(self, name: str) -> list[str]:
        """Returns the names of the hybrid metrics that consume a metric."""
        ...
