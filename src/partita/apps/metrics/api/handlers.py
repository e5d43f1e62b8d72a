"""The HTTP API of the catalogue, the same over every store; `openapi` describes it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, get_args
from urllib.parse import quote

import msgspec

from partita.apps.metrics import rules
from partita.apps.metrics.api.openapi import DESCRIPTION
from partita.apps.metrics.catalogue import Catalogue
from partita.apps.metrics.failures import (
    CatalogueError,
    Changed,
    InMigration,
    Refused,
    Unavailable,
    no_metric,
)
from partita.apps.metrics.metric import (
    NAME,
    NAME_CHARS_MAX,
    USER_CHARS_MAX,
    AggregationStyle,
    Change,
    Deprecation,
    Metric,
    NewDimension,
    NewGroup,
    NewMetric,
    ValueType,
    Version,
)
from partita.apps.metrics.modes import Mode, ModeWatch
from partita.clock import Clock, system_clock
from partita.server.http.web import Request, Response, Web, json_response, problem

PAGE_MAX = 100
USER = "x-user"
RETRY_SECONDS = {InMigration: "1", Unavailable: "1"}
VERSION = re.compile(r"[1-9][0-9]{0,8}\Z")
READABLE = {
    f"`str` matching regex {NAME!r}": "a letter or _, then letters, digits, _ and .",
    "`$.valueType`": f"`$.valueType`, which is one of {', '.join(get_args(ValueType))}",
    "`$.aggregationStyle`": (
        f"`$.aggregationStyle`, which is one of {', '.join(get_args(AggregationStyle))}"
    ),
}
"""Messages of the decoder, and clearer ones instead."""
ETAG = re.compile(r'(?:W/)?"([0-9]{1,9})"\Z')
USER_NAME = re.compile(rf"[!-~]{{1,{USER_CHARS_MAX}}}\Z")

T = TypeVar("T")
Answer = Callable[[Catalogue, Request], Awaitable[Response]]


class Api:
    """Handlers; each is given the store that answers in the mode of its request."""

    def __init__(
        self, stores: dict[Mode, Catalogue], watch: ModeWatch, clock: Clock = system_clock
    ) -> None:
        self._stores = stores
        self._watch = watch
        self._clock = clock

    def add_to(self, web: Web) -> None:
        for method, path, answer in (
            ("GET", "/dimensions", self.list_dimensions),
            ("POST", "/dimensions", self.add_dimension),
            ("POST", "/metric-groups", self.add_group),
            ("GET", "/metrics", self.list_metrics),
            ("POST", "/metrics", self.add_metric),
            ("GET", "/metrics/{name}", self.get_metric),
            ("PUT", "/metrics/{name}", self.update_metric),
            ("POST", "/metrics/{name}/deprecation", self.deprecate_metric),
            ("GET", "/metrics/{name}/versions", self.list_versions),
            ("GET", "/metrics/{name}/versions/{version}", self.get_version),
            ("GET", "/metrics/{name}/consumers", self.list_consumers),
        ):
            web.add(method, path, self._handler(answer, is_write=method != "GET"))
        web.add("GET", "/openapi.json", self.describe)
        web.add("GET", "/health", self.health)

    def _handler(self, answer: Answer, is_write: bool) -> Callable[[Request], Awaitable[Response]]:
        watch, stores = self._watch, self._stores

        async def handle(request: Request) -> Response:
            if is_write and not watch.is_current:
                await watch.refresh()
            mode = watch.enter()
            try:
                if is_write and not watch.is_current:
                    raise Unavailable(
                        "This server cannot reach DynamoDB, which has the mode of the catalogue: "
                        "try again in a moment."
                    )
                return await answer(stores[mode], request)
            except CatalogueError as error:
                return refusal(error)
            finally:
                watch.leave(mode)

        return handle

    async def describe(self, request: Request) -> Response:
        return json_response(DESCRIPTION)

    async def health(self, request: Request) -> Response:
        return json_response({"mode": self._watch.mode, "takesWrites": self._watch.is_current})

    # Dimensions and groups

    async def list_dimensions(self, store: Catalogue, request: Request) -> Response:
        limit, after = _page(request)
        names = await store.list_dimensions(limit, after)
        return _listed("dimensions", names, names[-1] if len(names) == limit else None)

    async def add_dimension(self, store: Catalogue, request: Request) -> Response:
        new = _body(request, NewDimension)
        await store.add_dimension(new)
        return _encoded(new, 201)

    async def add_group(self, store: Catalogue, request: Request) -> Response:
        new = _body(request, NewGroup)
        await store.add_group(new)
        return _encoded(new, 201)

    # Metrics

    async def list_metrics(self, store: Catalogue, request: Request) -> Response:
        limit, after = _page(request)
        metrics = await store.list_metrics(limit, after)
        return _listed("metrics", metrics, metrics[-1].name if len(metrics) == limit else None)

    async def add_metric(self, store: Catalogue, request: Request) -> Response:
        metric = await store.add(_body(request, NewMetric), _user(request))
        location = {"location": f"/metrics/{quote(metric.name)}"}
        return _metric(metric, 201, location)

    async def get_metric(self, store: Catalogue, request: Request) -> Response:
        metric = await store.get(_name(request))
        etag = _etag(metric)
        date = dict(request.query).get("date")
        if date is not None:
            metric = await rules.resolve(metric, rules.cutoff_time(date, "date"), store.get)
            # With the name, because different metrics have versions of the same number.
            etag = f'"{quote(metric.name)}:{metric.latest_version}"'
        if _is_current(request, etag):
            return Response(304, headers={"etag": etag})
        return _encoded(metric, headers={"etag": etag})

    async def update_metric(self, store: Catalogue, request: Request) -> Response:
        asked, expected = _body(request, Change), _expected(request)
        revision = rules.change(asked, _user(request), self._clock())
        return _metric(await store.revise(_name(request), revision, expected))

    async def deprecate_metric(self, store: Catalogue, request: Request) -> Response:
        asked, expected = _body(request, Deprecation), _expected(request)
        revision = rules.deprecation(asked, _user(request), self._clock())
        return _metric(await store.revise(_name(request), revision, expected))

    async def list_versions(self, store: Catalogue, request: Request) -> Response:
        return _listed("versions", await store.list_versions(_name(request)))

    async def get_version(self, store: Catalogue, request: Request) -> Response:
        text = request.parameters["version"]
        if VERSION.match(text) is None:
            raise Refused(f"{text!r} is not a version: versions are numbers from 1.")
        return _encoded(await store.get_version(_name(request), int(text)))

    async def list_consumers(self, store: Catalogue, request: Request) -> Response:
        return _listed("consumers", await store.consumers(_name(request)))


def refusal(error: CatalogueError) -> Response:
    headers = {}
    if type(error) in RETRY_SECONDS:
        headers["retry-after"] = RETRY_SECONDS[type(error)]
    return problem(error.status, str(error), headers, reason=type(error).__name__)


def _body(request: Request, shape: type[T]) -> T:
    if not request.body:
        raise Refused("The body is empty: send a JSON object.")
    try:
        return msgspec.json.decode(request.body, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        text = str(error)
        for machine, human in READABLE.items():
            text = text.replace(machine, human)
        raise Refused(f"The body is not valid: {text}.") from error


def _name(request: Request) -> str:
    """MariaDB ignores spaces at the end of a name, and DynamoDB refuses one that is too long."""
    name = request.parameters["name"]
    if len(name) > NAME_CHARS_MAX or name.endswith(" "):
        raise no_metric(name)
    return name


def _user(request: Request) -> str:
    user = request.headers.get(USER, "")
    if USER_NAME.match(user) is None:
        raise Refused(
            "A write needs the header X-User, which names who makes it: "
            f"up to {USER_CHARS_MAX} printable characters without spaces."
        )
    return user


def _page(request: Request) -> tuple[int, str]:
    query = dict(request.query)
    limit = query.get("limit", str(PAGE_MAX))
    if not (limit.isascii() and limit.isdigit() and 1 <= int(limit[:9]) <= PAGE_MAX):
        raise Refused(f"limit must be a number from 1 to {PAGE_MAX}, not {limit!r}.")
    after = query.get("after", "")
    if len(after) > NAME_CHARS_MAX:
        raise Refused("after must be the last name of the previous page.")
    return int(limit), after


def _expected(request: Request) -> int | None:
    """The version in If-Match; None when any is accepted."""
    given = request.headers.get("if-match", "*").strip()
    if given == "*":
        return None
    match = ETAG.match(given)
    if match is None:
        raise Changed(f'If-Match must be the ETag of the metric, such as "3", or *; not {given}.')
    return int(match[1])


def _is_current(request: Request, etag: str) -> bool:
    """Whether If-None-Match has the ETag, by weak comparison (RFC 9110)."""
    given = request.header(b"if-none-match")
    if given is None:
        return False
    known = {tag.strip().removeprefix("W/") for tag in given.decode("latin-1").split(",")}
    return bool(known & {etag, "*"})


def _etag(metric: Metric) -> str:
    return f'"{metric.latest_version}"'


def _metric(metric: Metric, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return _encoded(metric, status, {"etag": _etag(metric), **(headers or {})})


_encode = msgspec.json.Encoder().encode


def _encoded(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(status, _encode(value), headers=headers)


def _listed(
    what: str, values: list[str] | list[Metric] | list[Version], after: str | None = None
) -> Response:
    page: dict[str, Any] = {what: values}
    if after is not None:
        page["after"] = after
    return _encoded(page)
