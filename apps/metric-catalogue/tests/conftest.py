"""Fixtures of the catalogue: a private MariaDB, a Partita server, and the API over both."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from functools import cache
from http.client import HTTPConnection
from typing import Any, NamedTuple

import pytest

from testkit.servers import processes
from testkit.servers.database_servers import MariaDB
from testkit.session import pytest_collection_modifyitems  # noqa: F401


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: Any


class Api:
    """The catalogue over HTTP, as a client sees it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._connection = HTTPConnection(url.removeprefix("http://"), timeout=60)

    def __call__(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        sent = {"X-User": "mrcandre", **{k.replace("_", "-"): v for k, v in headers.items()}}
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        self._connection.request(method, path, content, sent)
        response = self._connection.getresponse()
        raw = response.read()
        received = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, received, json.loads(raw) if raw else None)

    def close(self) -> None:
        self._connection.close()

    def add_primitive(self, name: str, *dimensions: str, **attributes: Any) -> Answer:
        """Adds a metric as the website does: the group with its dimensions first."""
        for dimension in dimensions:
            self("POST", "/dimensions", {"name": dimension})
        group = {"name": name, "relatedDimensions": list(dimensions)}
        assert self("POST", "/metric-groups", group).status == 201
        body = {"name": name, "valueType": "SCALAR", "aggregationStyle": "SUM", **attributes}
        return self("POST", "/metrics", body)

    def put_values(self, metric: str, values: dict[str, Any], **dimensions: str) -> Answer:
        """Returns the values by time."""
        rows = [
            {"metric": metric, "time": time, "value": value, "dimensions": dimensions}
            for time, value in values.items()
        ]
        return self("POST", "/metric-data", {"values": rows})

    def points(self, metric: str, query: str) -> list[tuple[str, str | None]]:
        """Returns times and values."""
        answer = self("GET", f"/metrics/{metric}/data?{query}")
        assert answer.status == 200, answer.body
        return [(point["time"], point["value"]) for point in answer.body["points"]]

    def add_hybrid(self, name: str, formula: str, **attributes: Any) -> Answer:
        return self("POST", "/metrics", {"name": name, **hybrid(formula), **attributes})


Serve = Callable[[str], Api]


def hybrid(formula: str) -> dict[str, str]:
    return {"valueType": "HYBRID", "aggregationStyle": "SUM", "hybridFormula": formula}


def scalar(**attributes: Any) -> dict[str, Any]:
    return {"valueType": "SCALAR", "aggregationStyle": "SUM", **attributes}


class PrivateMariaDB(MariaDB):
    """Starts MariaDB, also with its temporary files in its own folder: other tests clean up in the
    common one."""

    def command(self) -> list[str]:
        return [*super().command(), f"--tmpdir={self.folder}"]


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDB]:
    PrivateMariaDB.require()
    with PrivateMariaDB() as server:
        yield server


@pytest.fixture(scope="session")
def partita() -> Iterator[processes.Server]:
    with processes.starting() as start:
        yield start("serve", "--port", "0", "--in-memory", stderr=None)


_numbers = itertools.count(1)
MODES = ("legacy", "migrating", "dynamodb")


class Catalogue:
    """One catalogue in both databases, with its servers, its commands and its contents."""

    def __init__(self, mariadb: MariaDB, partita: processes.Server) -> None:
        self.name = f"metrics{next(_numbers)}"
        self.mariadb = mariadb
        self.partita = partita
        self.options = {
            "--mysql": mariadb.create(self.name),
            "--endpoint": partita.url,
            "--table": self.name,
        }
        self.environment = {
            **processes.ENVIRONMENT,
            "PARTITA_METRICS_PASSWORD": mariadb.password,
        }

    def arguments(self, command: str, *more: str) -> list[str]:
        options = itertools.chain.from_iterable(self.options.items())
        return ["metrics", command, *options, *more]

    def count(self, state: str) -> int:
        """Counts the metrics in a state of the migration."""
        connection = self.mariadb.connect(self.name)
        cursor = connection.cursor()
        cursor.execute("SELECT COUNT(*) FROM metrics WHERE migratedToDynamoDB = %s", (state,))
        ((found,),) = cursor.fetchall()
        connection.close()
        return int(found)

    def clear(self) -> None:
        """Deletes everything but the mode."""
        tables = "metric_relationships metric_versions metrics dimensions_metric_groups dimensions"
        deletions = "".join(f"DELETE FROM {table};" for table in tables.split())
        groups = "DELETE FROM metric_groups WHERE name <> 'hybrid metrics'"
        self.mariadb.execute(deletions + groups, self.name)
        client = self.partita.client()
        keys = {"": ("name", "version"), "-directory": ("kind", "name")}
        for table, key in {**keys, "-values": ("metric", "place")}.items():
            name = self.name + table
            for page in client.get_paginator("scan").paginate(TableName=name):
                for item in page["Items"]:
                    if item.get("kind", {}).get("S") not in ("mode", "server"):
                        names = {attribute: item[attribute] for attribute in key}
                        client.delete_item(TableName=name, Key=names)


@pytest.fixture
def catalogue(mariadb: MariaDB, partita: processes.Server) -> Catalogue:
    return Catalogue(mariadb, partita)


@pytest.fixture
def serve(catalogue: Catalogue) -> Iterator[Serve]:
    """Starts a server of the catalogue in a mode: `serve("legacy")`."""
    apis: list[Api] = []
    with processes.starting() as start:

        def begin(mode: str) -> Api:
            arguments = catalogue.arguments("serve", "--port", "0", "--mode", mode)
            apis.append(Api(start(*arguments, env=catalogue.environment, stderr=None).url))
            return apis[-1]

        yield begin
        for api in apis:
            api.close()


@pytest.fixture(scope="session")
def serve_mode(
    mariadb: MariaDB, partita: processes.Server
) -> Iterator[Callable[[str], tuple[Catalogue, Api]]]:
    """Returns the server of a mode, which all tests share: `serve_mode("legacy")`."""
    with processes.starting() as start:

        @cache
        def begin(mode: str) -> tuple[Catalogue, Api]:
            catalogue = Catalogue(mariadb, partita)
            arguments = catalogue.arguments("serve", "--port", "0", "--mode", mode)
            return catalogue, Api(start(*arguments, env=catalogue.environment, stderr=None).url)

        yield begin


@pytest.fixture(scope="module", params=MODES)
def served(
    request: pytest.FixtureRequest, serve_mode: Callable[[str], tuple[Catalogue, Api]]
) -> tuple[Catalogue, Api]:
    return serve_mode(request.param)


@pytest.fixture
def api(served: tuple[Catalogue, Api]) -> Iterator[Api]:
    """The API in each mode, over an empty catalogue."""
    catalogue, api = served
    catalogue.clear()
    yield api
    api.close()
