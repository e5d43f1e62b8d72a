"""`/metrics`, `/figures` and alarms, of a service whose counter is killed."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from page_hit_counter.pagehits_settings import load
from partita.errors import PartitaError
from testkit.data.page_hit_pipeline import Pipeline, asset_id, put_assets, running, wait_for

from .conftest import ASSETS, SHORT_PERIODS

WEB, COUNTING = "processor,api", "counter,consumer"
NOTING = """
import json, pathlib
def handler(event, context):
    with pathlib.Path({path!r}).open("a") as file:
        file.write(json.dumps(event) + "\\n")
"""
URL, FUNCTION = 'endpoint = "PAGER"', 'function = "note"'
ALARMS = (
    ("behind", 'measure = "lag_seconds"\nabove = 3', URL),
    ("late", 'measure = "late_windows"\nabove = 0', FUNCTION),
    ("failing", 'measure = "failures_per_minute"\nabove = 0', URL),
    ("spam", 'measure = "spam_share"\nabove = 0.5', FUNCTION),
)
told: list[dict[str, Any]] = []


class Pager(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    folder = tmp_path_factory.mktemp("watched")
    pager = ThreadingHTTPServer(("127.0.0.1", 0), Pager)
    Thread(target=pager.serve_forever, daemon=True).start()
    watching = SHORT_PERIODS.replace('mode = "off"', 'mode = "observe"')
    settings = "alarm_check_seconds = 0.5\n" + watching
    for name, limit, whom in ALARMS:
        settings += f'[[alarms]]\nname = "{name}"\n{limit}\n{whom}\n'
    settings = settings.replace("PAGER", f"http://127.0.0.1:{pager.server_port}/")
    with running(folder, settings, parts=(WEB, COUNTING)) as pipeline:
        create_note(pipeline)
        put_assets(pipeline.client(), ASSETS)
        yield pipeline
    pager.shutdown()
    pager.server_close()


def create_note(pipeline: Pipeline) -> None:
    """The function that the alarms call."""
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("note.py", NOTING.format(path=str(pipeline.folder / "noted")))
    pipeline.client("lambda").create_function(
        FunctionName="note",
        Runtime="python3.12",
        Handler="note.handler",
        Role="arn:aws:iam::123456789012:role/any",
        Code={"ZipFile": package.getvalue()},
    )


def figures(pipeline: Pipeline) -> dict[str, float]:
    found: dict[str, float] = pipeline.get("/figures")[2]["totals"]
    return found


def test_all_processes_add_up_their_figures(watched: Pipeline) -> None:
    visits = [{"assetId": asset_id(n), "sectionId": 1, "paidType": "free"} for n in range(30)]
    watched.post([*visits, {"assetId": "none"}])
    wait_for(lambda: watched.get("/?brand=abc&period=day")[2]["lists"][0]["hits"], 30)
    # There are 30 rows in each of three windows, and each costs a unit.
    wait_for(lambda: figures(watched)["writeUnits"] >= 90, 30)
    found = figures(watched)
    assert (found["visits"], found["refused"], found["writeUnits"]) == (30, 1, 90)
    assert found["consumerRuns"] >= 3 and found["consumerMs"] > 0
    assert found["listHits"] + found["listMisses"] >= 1
    slots = watched.get("/figures?hours=1")[2]["slots"]
    assert sum(slot["writeUnits"] for slot in slots) == 90
    assert watched.request("api", "GET", "/figures?hours=1000")[0] == 400


def test_prometheus_reads_the_figures(watched: Pipeline) -> None:
    status, headers, content = watched.request("api", "GET", "/metrics")
    assert status == 200 and headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = content.decode().splitlines()
    found = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert found["partita_pagehits_visits_total"] == "30"
    assert found['partita_pagehits_counted_total{outcome="late"}'] == "0"
    assert {"partita_pagehits_lag_seconds", "partita_pagehits_late_windows"} <= found.keys()
    assert all(re.fullmatch(r"# (HELP|TYPE) \S+ .+", line) for line in lines if line[0] == "#")


def test_an_alarm_calls_a_url_and_a_function_when_it_begins_and_ends(watched: Pipeline) -> None:
    wait_for(lambda: told_of("behind")[-1:] == ["OK"], 30)
    watched.running[COUNTING].kill()
    wait_for(lambda: told_of("behind")[-1] == "ALARM", 30)
    wait_for(lambda: noted_of(watched, "late")[-1:] == ["ALARM"], 30)
    shown = {one["alarm"]: one["state"] for one in watched.get("/alarms")[2]["alarms"]}
    assert shown["behind"] == shown["late"] == "ALARM"
    watched.start(COUNTING)
    wait_for(lambda: told_of("behind")[-1] == noted_of(watched, "late")[-1] == "OK", 30)
    # Only the last one counts, because a slow start can raise an alarm too.
    *_, change = (one for one in told if (one["alarm"], one["state"]) == ("behind", "ALARM"))
    assert (change["before"], change["measure"]) == ("OK", "lag_seconds")
    assert change["value"] > 3


def test_alarms_tell_of_failures_and_of_spam(watched: Pipeline) -> None:
    assert told_of("failing") == ["OK"]
    watched.client().delete_table(TableName="pagehits")
    visit = {"sectionId": 1, "paidType": "free", "agent": "curl/8.5"}
    watched.post_until_taken([{**visit, "assetId": asset_id(n)} for n in range(40)])
    wait_for(lambda: "ALARM" in noted_of(watched, "spam"), 30)
    # A function may be called twice with a change, if the answer to the first call is lost.
    change, *_ = (
        one for one in noted(watched) if (one["alarm"], one["state"]) == ("spam", "ALARM")
    )
    assert change["measure"] == "spam_share" and change["value"] > 0.5
    # From here on rows cannot be stored.
    wait_for(lambda: told_of("failing") == ["OK", "ALARM"], 30)


def told_of(alarm: str) -> list[str]:
    return [change["state"] for change in told if change["alarm"] == alarm]


def noted(pipeline: Pipeline) -> list[dict[str, Any]]:
    path = pipeline.folder / "noted"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def noted_of(pipeline: Pipeline, alarm: str) -> list[str]:
    """Returns the states with which the function was called."""
    return [change["state"] for change in noted(pipeline) if change["alarm"] == alarm]


@pytest.mark.parametrize(
    ("alarm", "reason"),
    [
        ('measure = "weather"\nabove = 1\nfunction = "note"', "use one of failures_per_minute"),
        ('measure = "spam_share"\nfunction = "note"', "needs above or below"),
        ('measure = "spam_share"\nabove = 1', "needs an endpoint or a function"),
        ('measure = "spam_share"\nabove = 1\nfunction = "no.such:thing"', "cannot call"),
    ],
)
def test_an_alarm_that_makes_no_sense_is_refused(tmp_path: Path, alarm: str, reason: str) -> None:
    path = tmp_path / "pagehits.toml"
    path.write_text(f'[[alarms]]\nname = "one"\n{alarm}\n')
    with pytest.raises(PartitaError, match=reason):
        load(path)
