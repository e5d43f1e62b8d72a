"""The handlers of the HTTP API, the same over every store. `openapi` describes the API."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from time import monotonic, perf_counter
from typing import Any
from urllib.parse import quote

from metric_catalogue.api.api_messages import body, encoded, metric_name, refusal
from metric_catalogue.api.catalogue_monitoring import CatalogueMonitoring, is_scrape
from metric_catalogue.api.data_handlers import DataApi
from metric_catalogue.api.openapi import DESCRIPTION
from metric_catalogue.data.metric_data_service import MetricDataService
from metric_catalogue.metrics import metric_rules
from metric_catalogue.metrics.catalogue_errors import (
    CatalogueError,
    CatalogueMoved,
    CatalogueUnavailable,
    MetricInMigration,
    RequestRefused,
    VersionChanged,
)
from metric_catalogue.metrics.metric import (
    NAME_CHARS_MAX,
    USER_CHARS_MAX,
    Deprecation,
    Metric,
    MetricChange,
    MetricVersion,
    NewDimension,
    NewGroup,
    NewMetric,
)
from metric_catalogue.stores.catalogue import Catalogue
from metric_catalogue.stores.catalogue_modes import POLL_SECONDS, Mode, ModeWatch
from partita.foundation.clock import Clock, system_clock
from partita.server.http.web.web_service import WebRequest, WebResponse, WebService, json_response

logger = logging.getLogger(__name__)

PAGE_MAX = 100
MOVE_SECONDS_MAX = 30.0
"""How long a write waits for a cutover or a rollback to end."""
USER = "x-user"
VERSION = re.compile(r"[1-9][0-9]{0,8}\Z")
ETAG = re.compile(r'(?:W/)?"([0-9]{1,9})"\Z')
USER_NAME = re.compile(rf"[!-~]{{1,{USER_CHARS_MAX}}}\Z")

Answer = Callable[[Catalogue, WebRequest], Awaitable[WebResponse]]


class CatalogueApi:
    """The handlers. Each receives the store that answers in the mode of its request."""

    def __init__(
        self,
        stores: dict[Mode, Catalogue],
        watch: ModeWatch,
        data: MetricDataService | None,
        monitoring: CatalogueMonitoring,
        clock: Clock = system_clock,
    ) -> None:
        self._stores = stores
        self._watch = watch
        self._data = DataApi(data)
        self._monitoring = monitoring
        self._clock = clock

    def add_to(self, web: WebService) -> None:
        for method, path, answer in (
            ("GET", "/dimensions", self.list_dimensions),
            ("POST", "/dimensions", self.add_dimension),
            ("POST", "/metric-groups", self.add_group),
            ("GET", "/metrics", self.list_metrics),
            ("POST", "/metrics", self.add_metric),
            ("GET", "/metrics/{name}", self.get_metric),
            ("PUT", "/metrics/{name}", self.update_metric),
            ("DELETE", "/metrics/{name}", self.delete_metric),
            ("POST", "/metrics/{name}/deprecation", self.deprecate_metric),
            ("GET", "/metrics/{name}/versions", self.list_versions),
            ("GET", "/metrics/{name}/versions/{version}", self.get_version),
            ("GET", "/metrics/{name}/consumers", self.list_consumers),
        ):
            web.add(method, path, self._handler(answer, is_write=method != "GET"))
        data = self._data
        web.add("GET", "/metrics/{name}/data", self._handler(data.get, is_write=False))
        web.add("POST", "/metric-data/queries", self._handler(data.get_batch, is_write=False))
        web.add("POST", "/metric-data", self._handler(data.put, is_write=True))
        web.add("GET", "/openapi.json", self.describe)
        web.add("GET", "/health", self.health)
        web.add("GET", "/migration", self._monitoring.migration)
        web.add("GET", "/prometheus", self._monitoring.prometheus)

    def _handler(
        self, answer: Answer, is_write: bool
    ) -> Callable[[WebRequest], Awaitable[WebResponse]]:
        watch, stores, observe = self._watch, self._stores, self._monitoring.requests.observe
        operation = getattr(answer, "__name__", "")

        async def handle(request: WebRequest) -> WebResponse:
            began = perf_counter()
            response = await answered(request)
            observe(operation, response.status, perf_counter() - began)
            return response

        async def answered(request: WebRequest) -> WebResponse:
            """Answers a request. One that the change of the mode interrupts waits for it, and is
            answered in the new mode."""
            ends = monotonic() + MOVE_SECONDS_MAX
            while True:
                if not watch.is_current:
                    await watch.refresh()
                mode = watch.enter()
                try:
                    _refuse_lost(watch, is_write)
                    return await answer(stores[mode], request)
                except CatalogueError as error:
                    if not isinstance(error, CatalogueMoved) or monotonic() > ends:
                        return refusal(error)
                finally:
                    watch.leave(mode)
                await asyncio.sleep(POLL_SECONDS / 2)
                await watch.refresh()

        return handle

    async def describe(self, request: WebRequest) -> WebResponse:
        return json_response(DESCRIPTION)

    async def health(self, request: WebRequest) -> WebResponse:
        return json_response({"mode": self._watch.mode, "takesWrites": self._watch.is_current})

    # Dimensions and groups

    async def list_dimensions(self, store: Catalogue, request: WebRequest) -> WebResponse:
        limit, after = _page(request)
        names = await store.list_dimensions(limit, after)
        return _listed("dimensions", names, names[-1] if len(names) == limit else None)

    async def add_dimension(self, store: Catalogue, request: WebRequest) -> WebResponse:
        new = body(request, NewDimension)
        await store.add_dimension(new)
        return encoded(new, 201)

    async def add_group(self, store: Catalogue, request: WebRequest) -> WebResponse:
        new = body(request, NewGroup)
        await store.add_group(new)
        return encoded(new, 201)

    # Metrics

    async def list_metrics(self, store: Catalogue, request: WebRequest) -> WebResponse:
        # This path has listed the catalogue's metrics since before Prometheus, which scrapes the
        # path /metrics by default, was supported.
        if is_scrape(request):
            return await self._monitoring.prometheus(request)
        limit, after = _page(request)
        metrics = await store.list_metrics(limit, after)
        return _listed("metrics", metrics, metrics[-1].name if len(metrics) == limit else None)

    async def add_metric(self, store: Catalogue, request: WebRequest) -> WebResponse:
        new = body(request, NewMetric)
        await self._data.finish_deletion(store, new.name)
        with self._data.changing(new.name):
            metric = await store.add(new, _user(request))
        location = {"location": f"/metrics/{quote(metric.name)}"}
        return _metric(metric, 201, location)

    async def get_metric(self, store: Catalogue, request: WebRequest) -> WebResponse:
        metric = await store.get(metric_name(request))
        etag = _etag(metric)
        date = dict(request.query).get("date")
        if date is not None:
            metric = await metric_rules.resolve(
                metric, metric_rules.cutoff_time(date, "date"), store.get
            )
            # The ETag includes the name: the metric may be a chained one with the same version.
            etag = f'"{quote(metric.name)}:{metric.latest_version}"'
        if _is_current(request, etag):
            return WebResponse(304, headers={"etag": etag})
        return encoded(metric, headers={"etag": etag})

    async def update_metric(self, store: Catalogue, request: WebRequest) -> WebResponse:
        change, expected = body(request, MetricChange), _expected(request)
        revision = metric_rules.change(change, _user(request), self._clock())
        return await self._revise(store, request, revision, expected)

    async def deprecate_metric(self, store: Catalogue, request: WebRequest) -> WebResponse:
        deprecation, expected = body(request, Deprecation), _expected(request)
        revision = metric_rules.deprecation(deprecation, _user(request), self._clock())
        return await self._revise(store, request, revision, expected)

    async def _revise(
        self,
        store: Catalogue,
        request: WebRequest,
        revision: metric_rules.Revision,
        expected: int | None,
    ) -> WebResponse:
        name = metric_name(request)
        with self._data.changing(name):
            return _metric(await store.revise(name, revision, expected))

    async def delete_metric(self, store: Catalogue, request: WebRequest) -> WebResponse:
        name, user, expected = metric_name(request), _user(request), _expected(request)
        mariadb, dynamodb = self._stores.get(Mode.LEGACY), self._stores.get(Mode.DYNAMODB)
        if store not in (mariadb, dynamodb):
            raise MetricInMigration(
                "No metric can be deleted while the catalogue is being migrated: try again "
                "after the cutover."
            )
        async with self._data.deleting(name):
            await store.delete(name, expected)
        logger.info("%s has deleted the metric %s", user, name)
        return WebResponse(204)

    async def list_versions(self, store: Catalogue, request: WebRequest) -> WebResponse:
        return _listed("versions", await store.list_versions(metric_name(request)))

    async def get_version(self, store: Catalogue, request: WebRequest) -> WebResponse:
        text = request.parameters["version"]
        if VERSION.match(text) is None:
            raise RequestRefused(f"{text!r} is not a version: versions are numbers from 1.")
        return encoded(await store.get_version(metric_name(request), int(text)))

    async def list_consumers(self, store: Catalogue, request: WebRequest) -> WebResponse:
        return _listed("consumers", await store.consumers(metric_name(request)))


def _refuse_lost(watch: ModeWatch, is_write: bool) -> None:
    if watch.foreign is not None:
        raise CatalogueUnavailable(
            "The catalogue was moved, and this server was started without the database that it "
            "was moved to: use another server."
        )
    if is_write and not watch.is_current:
        raise CatalogueUnavailable(
            "This server cannot read the mode of the catalogue, because the database does not "
            "answer: try again in a moment."
        )


def _user(request: WebRequest) -> str:
    user = request.headers.get(USER, "")
    if USER_NAME.match(user) is None:
        raise RequestRefused(
            "A write needs the header X-User with the name of the user: "
            f"up to {USER_CHARS_MAX} printable characters without spaces."
        )
    return user


def _page(request: WebRequest) -> tuple[int, str]:
    query = dict(request.query)
    limit = query.get("limit", str(PAGE_MAX))
    if not (limit.isascii() and limit.isdigit() and 1 <= int(limit[:9]) <= PAGE_MAX):
        raise RequestRefused(f"limit must be a number from 1 to {PAGE_MAX}, not {limit!r}.")
    after = query.get("after", "")
    if len(after) > NAME_CHARS_MAX:
        raise RequestRefused("after must be the last name of the previous page.")
    return int(limit), after


def _expected(request: WebRequest) -> int | None:
    """Returns the version in If-Match, or None when the request accepts any."""
    header = request.headers.get("if-match", "*").strip()
    if header == "*":
        return None
    match = ETAG.match(header)
    if match is None:
        raise VersionChanged(
            f'If-Match must be the ETag of the metric, such as "3", or *; not {header}.'
        )
    return int(match[1])


def _is_current(request: WebRequest, etag: str) -> bool:
    """True when If-None-Match has the ETag, by weak comparison (RFC 9110)."""
    header = request.header(b"if-none-match")
    if header is None:
        return False
    tags = {tag.strip().removeprefix("W/") for tag in header.decode("latin-1").split(",")}
    return bool(tags & {etag, "*"})


def _etag(metric: Metric) -> str:
    return f'"{metric.latest_version}"'


def _metric(
    metric: Metric, status: int = 200, headers: dict[str, str] | None = None
) -> WebResponse:
    return encoded(metric, status, {"etag": _etag(metric), **(headers or {})})


def _listed(
    what: str, values: list[str] | list[Metric] | list[MetricVersion], after: str | None = None
) -> WebResponse:
    page: dict[str, Any] = {what: values}
    if after is not None:
        page["after"] = after
    return encoded(page)
