"""Every example of docs/how-to/use-kinesis-streams.md does what it shows."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from partita.assembly.service_registry import READS, WRITES
from testkit import ROOT
from testkit.servers import processes

PAGE = (ROOT / "docs" / "how-to" / "use-kinesis-streams.md").read_text()
VISITS, COUNT, DESTINATION = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SECONDS_MAX = 120


@pytest.fixture
def url(serve: Any) -> str:
    return str(serve("serve", "--port", "0", "--in-memory").url)


def program(example: str, url: str) -> list[str]:
    return [sys.executable, "-u", "-c", example.replace("http://127.0.0.1:8000", url)]


def printed(example: str, url: str) -> list[str]:
    said = subprocess.run(
        program(example, url),
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS_MAX,
        env=processes.ENVIRONMENT,
    )
    return said.stdout.splitlines()


def printed_until(example: str, url: str, last: str) -> Iterator[str]:
    process = subprocess.Popen(
        program(example, url), stdout=subprocess.PIPE, text=True, env=processes.ENVIRONMENT
    )
    timer = threading.Timer(SECONDS_MAX, process.kill)
    timer.start()
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            yield line.rstrip("\n")
            if line.rstrip("\n") == last:
                break
        timer.cancel()
        process.kill()


def test_records_are_put_got_and_counted(url: str) -> None:
    assert sorted(printed(VISITS, url)) == ["anna front page", "anna weather", "boris sport"]
    counted = "[('front page', 1), ('sport', 1), ('weather', 1)]"
    assert counted in list(printed_until(COUNT, url, counted))


def test_the_changes_of_a_table_arrive(url: str) -> None:
    expected = "INSERT orders {'id': {'S': '17'}, 'total': {'N': '42'}}"
    assert printed(DESTINATION, url) == [expected]


def test_the_page_names_every_operation() -> None:
    for name in {**READS, **WRITES}:
        if name.startswith("Kinesis."):
            assert name.removeprefix("Kinesis.") in PAGE, f"{name} is not on the page"
