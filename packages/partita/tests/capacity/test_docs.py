"""Every Python example of docs/reference/capacity.md does what it shows, and its settings can be
read.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest

from partita.database.capacity.scaling.capacity_schedules import scheduled_changes
from testkit import ROOT

PAGE = (ROOT / "docs" / "reference" / "capacity.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("program", blocks("python"))
def test_an_example_runs(program: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr


def test_the_schedules_can_be_read() -> None:
    (settings,) = blocks("toml")
    changes = scheduled_changes(tomllib.loads(settings)["capacity"])
    assert [change.index for change in changes] == [None, "by-date"]
