"""Prometheus, the progress of a migration and alarms, on a running catalogue."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue
from typing import Any
from urllib.request import Request, urlopen

import pytest

from testkit.servers import processes

from .conftest import Api, Catalogue, Serve

ALARM_SECONDS_MAX = 30


def scraped(url: str) -> str:
    accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3"
    with urlopen(Request(url, headers={"Accept": accept})) as response:
        assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
        return str(response.read().decode())


def test_prometheus_reads_requests_modes_and_caches(serve: Serve) -> None:
    api = serve("legacy")
    api.add_primitive("m", "country")
    assert api("GET", "/metrics/nobody").status == 404
    api.put_values("m", {"2026-01-01": 1})
    for _ in range(2):
        api.points("m", "time=2026-01-01")
    for path in ("/metrics", "/prometheus"):
        text = scraped(api.url + path)
        assert 'partita_catalogue_requests_total{operation="get_metric",code="404"} 1\n' in text
        assert 'partita_catalogue_mode{mode="legacy"} 1\n' in text
        assert 'partita_catalogue_metrics{state="NOT_MIGRATED"} 1\n' in text
        assert "partita_catalogue_cached_values_hits_total 1\n" in text
        for line in text.splitlines():
            assert re.fullmatch(r'#.*|\w+(\{(\w+="[^"]*",?)+\})? \S+', line), line
    # Other clients still get the list of metrics.
    assert [one["name"] for one in api("GET", "/metrics").body["metrics"]] == ["m"]


def test_the_progress_of_a_migration_is_shown(serve: Serve, catalogue: Catalogue) -> None:
    api = serve("legacy")
    for name in ("a", "b"):
        api.add_primitive(name, "country")
    counts = {"metrics": 2, "notMigrated": 2, "inMigration": 0, "migrated": 0, "migratedShare": 0}
    assert api("GET", "/migration").body == {"mode": "legacy", **counts}
    arguments = catalogue.arguments("migrate")
    assert processes.run(*arguments, env=catalogue.environment).returncode == 0
    counts |= {"notMigrated": 0, "migrated": 2, "migratedShare": 1}
    assert api("GET", "/migration").body == {"mode": "migrating", **counts}


@pytest.fixture
def pager() -> Iterator[tuple[str, Queue[dict[str, Any]]]]:
    """Yields a URL, and a list of what is sent to it."""
    received: Queue[dict[str, Any]] = Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", received
    server.shutdown()
    server.server_close()


def test_an_alarm_is_sent_once_when_its_state_changes(
    catalogue: Catalogue, tmp_path: Path, pager: tuple[str, Queue[dict[str, Any]]]
) -> None:
    url, received = pager
    settings = tmp_path / "alarms.toml"
    settings.write_text(
        '[[alarms]]\nname = "unmigrated"\nmeasure = "not_migrated"\nabove = 0\n'
        f'endpoint = "{url}"\n'
        '[[alarms]]\nname = "busy"\nmeasure = "requests_per_second"\nabove = 1e9\n'
        'function = "beside:tell"\n'
    )
    told = tmp_path / "told"
    (tmp_path / "beside.py").write_text(
        f"def tell(change): open({str(told)!r}, 'w').write(change['state'])"
    )
    with processes.starting() as start:
        arguments = catalogue.arguments("serve", "--port", "0", "--alarms", str(settings))
        api = Api(start(*arguments, env=catalogue.environment, stderr=None).url)
        first = received.get(timeout=ALARM_SECONDS_MAX)
        assert (first["alarm"], first["state"], first["before"]) == (
            "unmigrated",
            "OK",
            "INSUFFICIENT_DATA",
        )
        api.add_primitive("m", "country")
        second = received.get(timeout=ALARM_SECONDS_MAX)
        assert (second["state"], second["before"], second["value"]) == ("ALARM", "OK", 1)
        states = {one["alarm"]: one["state"] for one in api("GET", "/alarms").body["alarms"]}
        assert states == {"unmigrated": "ALARM", "busy": "OK"}
        assert received.empty()
        assert told.read_text() == "OK"
        api.close()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "a"\nmeasure = "mood"\nabove = 1\nendpoint = "http://x"', "has no measure mood"),
        ('name = "a"\nmeasure = "p99_ms"\nendpoint = "http://x"', "needs above or below"),
        ('name = "a"\nmeasure = "p99_ms"\nabove = 1', "needs an endpoint or a function"),
        ('name = "a"\nmeasure = "p99_ms"\nabove = 1\nfunction = "nowhere:f"', "cannot call"),
    ],
)
def test_an_alarm_that_makes_no_sense_is_refused(tmp_path: Path, text: str, message: str) -> None:
    settings = tmp_path / "alarms.toml"
    settings.write_text(f"[[alarms]]\n{text}\n")
    done = processes.run("metrics", "serve", "--alarms", str(settings))
    assert done.returncode != 0 and message in done.stderr
