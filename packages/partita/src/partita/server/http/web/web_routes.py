"""Routes: finds the handler of a request by its method and the segments of its path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from partita.server.http.web.web_messages import WebRequest, WebResponse, decoded, problem

Handler = Callable[[WebRequest], Awaitable[WebResponse]]


class WebRoute(NamedTuple):
    """A path with its handlers, by method. Segments are given with their positions:
    `/metrics/{name}` has the literals (0, "") and (1, "metrics") and the parameter (2, "name")."""

    literals: tuple[tuple[int, str], ...]
    parameters: tuple[tuple[int, str], ...]
    handlers: dict[str, Handler]


class WebRoutes:
    """All routes of a service. Routes with the same number of segments are tried in the order in
    which they were added."""

    def __init__(self) -> None:
        self.by_length: dict[int, dict[str, WebRoute]] = {}
        """Routes by their number of segments, then by path."""

    def add(self, method: str, path: str, handler: Handler) -> None:
        segments = path.split("/")
        routes = self.by_length.setdefault(len(segments), {})
        if path not in routes:
            routes[path] = _route(segments)
        routes[path].handlers[method] = handler

    def find(self, request: WebRequest) -> Handler | WebResponse:
        """Returns the handler and sets the request's parameters, or returns a 404, 405 or 400."""
        segments = request.path.split("/")
        for route in self.by_length.get(len(segments), {}).values():
            for place, literal in route.literals:
                if segments[place] != literal:
                    break
            else:
                return _choose(route, segments, request)
        return problem(404, f"There is nothing at {request.path}.")


def _route(segments: list[str]) -> WebRoute:
    places = list(enumerate(segments))
    return WebRoute(
        tuple((place, text) for place, text in places if not text.startswith("{")),
        tuple((place, text.strip("{}")) for place, text in places if text.startswith("{")),
        {},
    )


def _choose(route: WebRoute, segments: list[str], request: WebRequest) -> Handler | WebResponse:
    for place, name in route.parameters:
        value = decoded(segments[place])
        if not value:
            return problem(400, f"The {name} in {request.path} is empty or not UTF-8.")
        request.parameters[name] = value
    handler = route.handlers.get("GET" if request.method == "HEAD" else request.method)
    if handler is not None:
        return handler
    allowed = ", ".join(sorted({*route.handlers, *(["HEAD"] if "GET" in route.handlers else [])}))
    if request.method == "OPTIONS":
        return WebResponse(204, headers={"allow": allowed})
    return problem(
        405, f"{request.path} takes {allowed}, not {request.method}.", headers={"allow": allowed}
    )
