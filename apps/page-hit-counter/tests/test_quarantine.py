"""Cases in the quarantine are kept, read, released and confirmed, over HTTP and by commands."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from benchmarks.applications.visits import START, MadeVisit, visits
from page_hit_counter.commands import spam_commands
from page_hit_counter.service.authorization import AccessControl
from page_hit_counter.spam.adjustments import Adjustment
from page_hit_counter.spam.quarantine import Quarantine
from page_hit_counter.spam.quarantine_routes import add_quarantine_routes
from page_hit_counter.spam.spam_cases import STATUSES, WithheldHits
from page_hit_counter.spam.spam_filter import SpamFilter
from page_hit_counter.spam.spam_settings import SpamSettings
from partita.client import Client
from partita.server.http.web.web_messages import WebRequest, WebResponse
from partita.server.http.web.web_service import WebService
from testkit.servers import processes

Answer = TypeVar("Answer")
Work = Callable[[Quarantine], Awaitable[Answer]]
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[processes.Server]:
    with processes.starting() as start:
        yield start("serve", "--port", "0", "--in-memory", stderr=None)


class Place:
    """A quarantine and a stream of their own on the server."""

    def __init__(self, server: processes.Server) -> None:
        self.url = server.url
        self.name = f"quarantine-{next(_numbers)}"
        self.kinesis = server.client("kinesis")
        self.kinesis.create_stream(StreamName=self.name, ShardCount=1)
        self.run(lambda quarantine: quarantine.create())

    def run(self, work: Work[Answer]) -> Answer:
        async def run() -> Answer:
            client = Client(self.url)
            try:
                return await work(Quarantine(client, self.name, self.name))
            finally:
                await client.close()

        return asyncio.run(run())

    def keep(self, withheld: list[WithheldHits]) -> None:
        self.run(lambda quarantine: quarantine.keep(withheld))

    def ask(self, method: str, target: str, screen: SpamFilter | None = None) -> tuple[int, Any]:
        """Sends a request through the routes of the service."""

        async def answer(quarantine: Quarantine) -> WebResponse:
            web = WebService()
            add_quarantine_routes(web, AccessControl(host="127.0.0.1"), quarantine, screen)
            return await web.answer(WebRequest(method.encode(), target.encode(), {}))

        response = self.run(answer)
        return response.status, json.loads(response.body)

    def adjustments(self) -> list[Adjustment]:
        """Returns the adjustments on the stream."""
        shard = self.kinesis.list_shards(StreamName=self.name)["Shards"][0]["ShardId"]
        iterator = self.kinesis.get_shard_iterator(
            StreamName=self.name, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        records = self.kinesis.get_records(ShardIterator=iterator)["Records"]
        return [Adjustment.decode(record["Data"]) for record in records]


@pytest.fixture
def place(server: processes.Server) -> Place:
    return Place(server)


def visit(seconds: float = 0, visitor: str = "ann", agent: str = "Firefox") -> MadeVisit:
    return MadeVisit("abc", 7, 5, "free", "article", visitor, agent, "", START + seconds)


def reloaded(place: Place, screen: SpamFilter | None = None) -> str:
    """Sends ten visits in two batches, of which the rule withholds seven; returns the case's id."""
    screen = screen or SpamFilter(SpamSettings(mode="filter"))
    for first in (0, 100):
        judged = screen.judge([visit(first + second) for second in range(5)])
        place.keep(judged.withheld)
    (case,) = place.run(lambda quarantine: quarantine.cases("abc"))
    return case.id


def test_a_case_gathers_what_one_visitor_did_in_an_hour(place: Place) -> None:
    name = reloaded(place)
    status, case = place.ask("GET", f"/quarantine/{name}?brand=abc")
    assert status == 200
    assert {k: case[k] for k in ("id", "brand", "reason", "subject", "status", "hits")} == {
        "id": name,
        "brand": "abc",
        "reason": "reload",
        "subject": "ann",
        "status": "quarantined",
        "hits": 7,
    }
    assert name.startswith("2020-05-06T09-reload-")
    assert (case["firstTime"], case["lastTime"]) == (START + 3, START + 100)
    assert [(row["time"] - START, row["hits"]) for row in case["rows"]] == [(0, 2), (60, 5)]
    assert [seen["time"] - START for seen in case["visits"]] == [3, 4, 100, 101, 102, 103, 104]


def test_cases_are_listed_newest_first_and_by_status(place: Place) -> None:
    reloaded(place)
    judged = SpamFilter(SpamSettings(mode="filter")).judge([visit(7_200, agent="curl/8")])
    place.keep(judged.withheld)
    status, answer = place.ask("GET", "/quarantine?brand=abc")
    assert (status, [case["reason"] for case in answer["cases"]]) == (200, ["bot", "reload"])
    assert len(place.ask("GET", "/quarantine?brand=abc&limit=1")[1]["cases"]) == 1
    assert place.ask("GET", "/quarantine?brand=abc&status=released")[1] == {"cases": []}
    assert place.ask("GET", "/quarantine?brand=def")[1] == {"cases": []}


def test_a_release_puts_the_hits_on_the_stream_once(place: Place) -> None:
    name = reloaded(place)
    for _ in range(2):
        status, case = place.ask("POST", f"/quarantine/{name}/release?brand=abc")
        assert (status, case["status"]) == (200, "released")
    (found,) = place.adjustments()
    assert [(row.time - START, row.hits) for row in found.rows] == [(0, 2), (60, 5)]
    assert {row[:5] for row in found.rows} == {("abc", 7, 5, "free", "article")}


def test_a_release_that_was_interrupted_is_repeated_under_the_same_name(place: Place) -> None:
    """New evidence that arrives meanwhile gets an adjustment with an id of its own."""
    screen = SpamFilter(SpamSettings(mode="filter"))
    name = reloaded(place, screen)

    class Interrupted(Exception):
        pass

    async def release_and_fall(quarantine: Quarantine) -> None:
        adjust = quarantine._adjust

        async def fall(adjustment: Adjustment) -> None:
            await adjust(adjustment)
            raise Interrupted

        quarantine._adjust = fall  # type: ignore[method-assign]
        await quarantine.release("abc", name)

    with pytest.raises(Interrupted):
        place.run(release_and_fall)
    assert place.run(lambda quarantine: quarantine.case("abc", name)).status == "releasing"
    place.keep(screen.judge([visit()]).withheld + screen.judge([visit(130)]).withheld)
    place.run(lambda quarantine: quarantine.release("abc", name))
    first, again, more = place.adjustments()
    assert first == again
    assert more.id != first.id
    assert [sum(row.hits for row in one.rows) for one in (first, more)] == [7, 2]


def test_a_release_of_many_pieces_takes_few_records(place: Place) -> None:
    """The counter has to remember each record, and has limited room for that."""
    screen = SpamFilter(SpamSettings(mode="filter"))
    name = reloaded(place, screen)
    for second in range(40):
        place.keep(screen.judge([visit(110 + second)]).withheld)
    place.run(lambda quarantine: quarantine.release("abc", name))
    (found,) = place.adjustments()
    assert sum(row.hits for row in found.rows) == 47
    assert len(found.rows) == 3


def test_what_does_not_fit_an_item_is_withheld_all_the_same(place: Place) -> None:
    chance = random.Random(7)
    screen = SpamFilter(SpamSettings(mode="filter"))
    agents = (
        "".join(chr(chance.randrange(0x10000, 0x10FFFF)) for _ in range(512)) for _ in range(500)
    )
    place.keep(screen.judge([visit(agent=agent) for agent in agents]).withheld)
    (case,) = place.run(lambda quarantine: quarantine.cases("abc"))
    assert case.hits == 497


def test_what_is_in_no_list_is_not_judged(place: Place) -> None:
    """Visits to assets that are not in the catalogue may not even have a brand."""
    screen = SpamFilter(SpamSettings(mode="filter"))
    unknown = [
        visit(second, agent="curl/8")._replace(brand="", resource_type=None) for second in range(9)
    ]
    assert screen.judge(unknown).withheld == []
    assert screen.judge([visit()]).verdicts is None
    place.run(lambda quarantine: quarantine.save(screen))


@pytest.mark.parametrize(
    ("target", "status", "words"),
    [
        (f"/quarantine?brand=abc&limit={'9' * 5000}", 400, "limit is a number"),
        (f"/quarantine?brand={'x' * 3000}", 400, "cannot be the name of a brand"),
        ("/quarantine/summary?brand=a%23b", 400, "cannot be the name of a brand"),
        (f"/quarantine/{'x' * 2000}?brand=abc", 404, "no case"),
    ],
)
def test_invalid_requests_are_refused_with_the_reason(
    place: Place, target: str, status: int, words: str
) -> None:
    found, answer = place.ask("GET", target)
    assert (found, words in answer["detail"]) == (status, True)


def test_a_released_visitor_passes_and_a_confirmed_one_does_not(place: Place) -> None:
    screen = SpamFilter(SpamSettings(mode="filter"))
    name = reloaded(place, screen)
    place.run(lambda quarantine: quarantine.release("abc", name))
    place.run(lambda quarantine: quarantine.refresh(screen))
    assert screen.judge([visit(200 + second) for second in range(5)]).verdicts is None
    judged = screen.judge([visit(300 + second, visitor="bob") for second in range(5)])
    place.keep(judged.withheld)
    other = judged.withheld[0].case_id
    assert place.ask("POST", f"/quarantine/{other}/confirm?brand=abc")[1]["status"] == "confirmed"
    place.run(lambda quarantine: quarantine.refresh(screen))
    assert screen.judge([visit(4_000, visitor="bob")]).verdicts == ["confirmed"]
    assert sum(row.hits for row in place.adjustments()[-1].rows) == 7


def test_what_is_released_cannot_be_confirmed(place: Place) -> None:
    name = reloaded(place)
    place.ask("POST", f"/quarantine/{name}/release?brand=abc")
    status, answer = place.ask("POST", f"/quarantine/{name}/confirm?brand=abc")
    assert status == 409
    assert "has been released" in answer["detail"]


def test_an_observed_case_has_nothing_to_count(place: Place) -> None:
    name = reloaded(place, SpamFilter(SpamSettings(mode="observe")))
    assert place.ask("POST", f"/quarantine/{name}/release?brand=abc")[1]["status"] == "released"
    assert place.adjustments() == []


def test_an_anomaly_is_kept_with_score_and_explanation(place: Place) -> None:
    wave = [visit(960 + n / 20, visitor=f"wave-{n}") for n in range(600)]
    made = sorted([*visits(minutes=19, per_second=20, seed=6), *wave], key=lambda one: one.time)
    screen = SpamFilter(SpamSettings(mode="filter"))
    withheld = []
    for first in range(0, len(made), 100):
        withheld += screen.judge(made[first : first + 100]).withheld
    place.keep(withheld)
    cases = place.run(lambda quarantine: quarantine.cases("abc"))
    case = next(case for case in cases if case.subject == "7 (first visit)")
    assert case.reason == "anomaly"
    assert case.score is not None and case.score > 1
    assert {part.feature for part in case.explanation} >= {"hits", "share", "surge", "stays"}
    assert {part.direction for part in case.explanation} <= {"high", "low"}
    assert place.ask("GET", "/quarantine/summary?brand=abc", screen)[1]["counts"]["anomaly"] > 500


def test_what_was_learned_is_saved_and_restored(place: Place) -> None:
    made = visits(minutes=15, per_second=10, seed=6)
    before = SpamFilter(SpamSettings(mode="filter"))
    for first in range(0, len(made), 100):
        before.judge(made[first : first + 100])
    before.judge([visit(second) for second in range(5)])
    for _ in range(2):
        place.run(lambda quarantine: quarantine.save(before))
    after = SpamFilter(SpamSettings(mode="filter"))
    place.run(lambda quarantine: quarantine.restore(after))
    after.judge(made[:1])
    learned = after.learned()["abc"]
    assert len(learned.points) > 256
    assert learned.points == before.learned()["abc"].points
    assert learned.usual == before.learned()["abc"].usual


def test_wrong_requests_are_refused_with_the_reason(place: Place) -> None:
    for target, word in (
        ("/quarantine", "brand"),
        ("/quarantine?brand=abc&status=lost", "status is one of observed, quarantined"),
        ("/quarantine?brand=abc&limit=0", "limit is a number from 1 to 1000"),
        ("/quarantine?brand=abc&colour=red", "no parameter 'colour'"),
    ):
        status, answer = place.ask("GET", target)
        assert status == 400
        assert word in answer["detail"]
    status, answer = place.ask("GET", "/quarantine/none?brand=abc")
    assert (status, answer["detail"]) == (404, "There is no case none of abc in the quarantine.")


def test_the_command_line_lists_shows_and_decides(place: Place, tmp_path: Path) -> None:
    name = reloaded(place)
    config = tmp_path / "pagehits.toml"
    config.write_text(f'stream = "{place.name}"\n[spam]\nquarantine_table = "{place.name}"\n')
    options = ("--brand", "abc", "--endpoint", place.url, "--config", str(config))

    def run(*arguments: str) -> str:
        done = processes.run("pagehits", "quarantine", *arguments, *options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run("list") == f"{name}  quarantined  7 hits  reload: ann\n"
    assert f"{START + 3} 7 ann Firefox" in run("show", name)
    assert json.loads(run("show", name, "--json"))["case"]["hits"] == 7
    assert "confirmed" in run("confirm", name)
    assert "released" in run("release", name)
    assert sum(row.hits for one in place.adjustments() for row in one.rows) == 7


def test_the_command_line_knows_every_status() -> None:
    assert spam_commands.STATUSES == STATUSES


def test_what_visitors_call_themselves_does_not_command_a_terminal(place: Place) -> None:
    screen = SpamFilter(SpamSettings(mode="filter"))
    place.keep(screen.judge([visit(agent="bot \x1b]0;x\x07\x9b2J")]).withheld)
    (case,) = place.run(lambda quarantine: quarantine.cases("abc"))
    assert spam_commands._line(case).endswith("bot: bot \ufffd]0;x\ufffd\ufffd2J")
