"""Every example of docs/how-to/run-functions.md does what it shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import msgspec

from partita.foundation import server_settings
from partita.foundation.server_settings import FunctionSettings, ScheduleSettings, SinkSettings
from testkit import ROOT
from testkit.servers.processes import Server

PAGE = (ROOT / "docs" / "how-to" / "run-functions.md").read_text()


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_programs_do_what_they_show(server: Server) -> None:
    said = []
    for program in examples("python"):
        done = subprocess.run(
            [sys.executable, "-c", program.replace("http://127.0.0.1:8000", server.url)],
            capture_output=True,
            text=True,
            check=True,
        )
        said.append(done.stdout)
    assert said == ["Hello, Ada\n", "Creating\n"]


def test_the_settings_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "partita.toml"
    path.write_text("\n".join(examples("toml")))
    loaded = server_settings.load(path)
    assert (len(loaded.functions), len(loaded.schedules), len(loaded.sinks)) == (1, 2, 3)


def test_the_page_names_every_setting() -> None:
    shown = "\n".join(examples("toml"))
    for kind in (FunctionSettings, ScheduleSettings, SinkSettings):
        for field in msgspec.structs.fields(kind):
            if field.name != "maximum_retries":
                assert re.search(rf"\b{field.name} = ", shown), f"{field.name} is not on the page"
