"""Yesterday's traffic, from access logs."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from page_hit_counter.processing.access_logs import read_time
from testkit.data.page_hit_pipeline import (
    ONE_PROCESS,
    Pipeline,
    asset_id,
    put_assets,
    running,
    wait_for,
)
from testkit.servers import processes

SETTINGS = r"""
spread = 0.01
[[urls]]
pattern = '^/(?P<resourceType>article|recipe)/(?P<assetId>\d+)'
brand = "ghi"
section_id = 4

[spam]
mode = "off"
"""
BROWSER = "Mozilla/5.0 (X11; Linux x86_64) Firefox/130.0"
YESTERDAY = int(time.time()) // 86_400 * 86_400 - 86_400


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    with running(tmp_path_factory.mktemp("import"), SETTINGS, parts=ONE_PROCESS) as found:
        put_assets(found.client(), 2)
        yield found


def line(second: float, target: str, method: str = "GET", status: int = 200) -> str:
    moment = datetime.fromtimestamp(YESTERDAY + second, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
    return f'192.0.2.7 - - [{moment}] "{method} {target} HTTP/1.1" {status} 53 "-" "{BROWSER}"\n'


def test_visits_of_two_logs_are_counted_and_other_lines_are_reported(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    early = [line(60 * minute, "/article/901") for minute in range(600)]
    late = [line(36_000 + 60 * minute, "/recipe/902?x=1") for minute in range(300)]
    late += [line(60_000, f"/article/{asset_id(0)}")] * 5
    late += [line(60_001, "/about"), line(60_002, "/article/901", "POST"), "nonsense\n"]
    late += [line(60_003, "/article/901", status=404), line(60_004, "/article/901", status=304)]
    late += [line(7 * 86_400, "/article/901")]
    first, second = tmp_path / "access.log.1.gz", tmp_path / "access.log"
    first.write_bytes(gzip.compress("".join(early).encode()))
    second.write_text("".join(late))
    arguments = ("pagehits", "import", second, first, "--config", pipeline.config)
    done = processes.run(*arguments, "--endpoint", pipeline.endpoint)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "911 lines: 907 visits, 2 other requests, 1 URLs without an asset, 1 unreadable "
        "(the first: access.log:308). 1 of the visits were refused (the first: time is "
    )
    # Windows close one after the other, and each is listed as soon as it is closed.
    wait_for(lambda: hits(pipeline, "ghi") == {901: 601, 902: 300})
    wait_for(lambda: hits(pipeline, "abc") == {asset_id(0): 5})
    again = processes.run(*arguments, "--endpoint", pipeline.endpoint)
    assert again.stdout.split()[:4] == done.stdout.split()[:4]
    wait_for(lambda: pipeline.get("/brands")[2]["repeated"])
    assert hits(pipeline, "ghi") == {901: 601, 902: 300}


def hits(pipeline: Pipeline, brand: str) -> dict[int, int]:
    _, _, answer = pipeline.get(f"/?brand={brand}&period=week")
    return {hit["assetId"]: hit["hits"] for hit in answer["lists"][0]["hits"]}


def test_of_a_damaged_file_nothing_is_imported(pipeline: Pipeline, tmp_path: Path) -> None:
    whole = gzip.compress("".join(line(n, "/article/905") for n in range(2_000)).encode())
    log = tmp_path / "access.log.gz"
    log.write_bytes(whole[: len(whole) // 2])
    arguments = ("--config", pipeline.config, "--endpoint", pipeline.endpoint)
    done = processes.run("pagehits", "import", log, *arguments)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "nothing is imported" in done.stderr


def test_without_a_rule_nothing_is_imported(pipeline: Pipeline, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text(line(1, "/article/1"))
    done = processes.run("pagehits", "import", log, "--endpoint", pipeline.endpoint)
    assert done.returncode == 1
    assert "[[urls]]" in done.stderr


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("06/May/2020:11:05:12 +0000", 1588763112),
        ("06/May/2020:14:05:12 +0300", 1588763112),
        ("06/May/2020:06:35:12 -0430", 1588763112),
    ],
)
def test_times_of_a_log_are_read_with_their_zone(text: str, seconds: int) -> None:
    assert read_time(text) == seconds


@pytest.mark.parametrize("text", ["", "06/Mai/2020:11:05:12 +0000", "31/Feb/2020:11:05:12 +0000"])
def test_texts_that_are_not_times_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        read_time(text)
