"""The handlers of GetMetricData and PutMetricData, and what a change of a metric does to its
values."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import msgspec

from metric_catalogue.api.api_messages import body, encoded, invalid, metric_name
from metric_catalogue.data.data_messages import DataQueries, DataQuery, MetricData, NewValues
from metric_catalogue.data.metric_data_service import MetricDataService, ReadBudget
from metric_catalogue.metrics.catalogue_errors import (
    CatalogueError,
    CatalogueUnavailable,
    MetricNotFound,
    RequestRefused,
)
from metric_catalogue.stores.catalogue import Catalogue
from partita.server.http.web.web_service import WebRequest, WebResponse

DIMENSION = "dimension."
"""The prefix of parameters that name a dimension: dimension.country=IT."""
PARAMETERS = ("time", "start", "end", "period")


class DataFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Takes the place of the answer to one of several queries that was refused."""

    metric: str
    status: int
    reason: str
    detail: str


class DataApi:
    def __init__(self, data: MetricDataService | None) -> None:
        self._data = data

    @contextmanager
    def changing(self, name: str) -> Iterator[None]:
        """Wraps a change of a metric. Cached definitions and values are forgotten, so that this
        server answers with the change at once."""
        try:
            yield
        finally:
            if self._data is not None:
                self._data.forget(name)

    @asynccontextmanager
    async def deleting(self, name: str) -> AsyncIterator[None]:
        """Wraps the deletion of a metric, and deletes its values with it."""
        if self._data is None:
            yield
            return
        values = self._data.values
        await values.mark_deleted(name)
        try:
            with self.changing(name):
                yield
        except CatalogueError:
            # After a kill or any other error the mark stays: whether the metric is deleted is not
            # known, and `finish_deletion` decides it when the metric is added again.
            await values.unmark(name)
            raise
        await values.purge(name)

    async def finish_deletion(self, store: Catalogue, name: str) -> None:
        """Deletes the values of a deleted metric before one of the same name is added."""
        if self._data is not None and await self._data.values.is_marked(name):
            try:
                await store.get(name)
            except MetricNotFound:
                await self._data.values.purge(name)

    async def get(self, store: Catalogue, request: WebRequest) -> WebResponse:
        query = _query(metric_name(request), request.query)
        return encoded(await self._service.get(store, query, ReadBudget()))

    async def get_batch(self, store: Catalogue, request: WebRequest) -> WebResponse:
        queries, budget = body(request, DataQueries).queries, ReadBudget()
        answers = (self._answer(store, query, budget) for query in queries)
        return encoded({"results": await asyncio.gather(*answers)})

    async def _answer(
        self, store: Catalogue, query: DataQuery, budget: ReadBudget
    ) -> MetricData | DataFailure:
        try:
            return await self._service.get(store, query, budget)
        except CatalogueError as error:
            return DataFailure(
                metric=query.metric,
                status=error.status,
                reason=error.reason,
                detail=error.client_message,
            )

    async def put(self, store: Catalogue, request: WebRequest) -> WebResponse:
        return encoded(await self._service.put(store, body(request, NewValues).values), 201)

    @property
    def _service(self) -> MetricDataService:
        if self._data is None:
            raise CatalogueUnavailable("Values are in DynamoDB: start this server with --endpoint.")
        return self._data


def _query(name: str, parameters: list[tuple[str, str]]) -> DataQuery:
    fields: dict[str, object] = {"metric": name}
    dimensions: dict[str, str] = {}
    for parameter, value in parameters:
        if parameter in fields or parameter.removeprefix(DIMENSION) in dimensions:
            raise RequestRefused(f"The parameter {parameter} is given twice.")
        if parameter.startswith(DIMENSION):
            dimensions[parameter.removeprefix(DIMENSION)] = value
        elif parameter in PARAMETERS:
            fields[parameter] = value
        else:
            raise RequestRefused(
                f"There is no parameter {parameter!r}: use {', '.join(PARAMETERS)}, or "
                f"{DIMENSION}NAME."
            )
    try:
        return msgspec.convert({**fields, "dimensions": dimensions}, DataQuery)
    except msgspec.ValidationError as error:
        raise invalid("request", error) from error
