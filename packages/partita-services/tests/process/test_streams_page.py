"""Every example of docs/how-to/use-streams.md does what it shows."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from partita.foundation.server_settings import load
from partita_services.functions.mappings.event_filters import compile_filters
from testkit import ROOT

PAGE = (ROOT / "docs" / "how-to" / "use-streams.md").read_text()
SECONDS_MAX = 120


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_stream_is_read_and_the_function_is_called(serve: Any, tmp_path: Path) -> None:
    reader, function, _ = examples("python")
    settings = tmp_path / "partita.toml"
    settings.write_text(examples("toml")[0])
    (tmp_path / "shop.py").write_text(function)
    server = serve("serve", "--port", "0", "--in-memory", "--config", settings)
    program = reader.replace("http://127.0.0.1:8000", server.url)
    said = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS_MAX,
    )
    assert said.stdout == "INSERT {'id': {'S': '17'}, 'total': {'N': '42'}}\n"
    totals = tmp_path / "totals.txt"
    deadline = time.monotonic() + SECONDS_MAX
    while not totals.exists() or totals.read_text() != "INSERT 42\n":
        assert time.monotonic() < deadline, "the function was not called"
        time.sleep(0.02)


def test_the_example_for_test_suites_passes() -> None:
    exec(compile(examples("python")[2], "streams.md", "exec"), {"__name__": "example"})


def test_all_settings_on_the_page_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "partita.toml"
    path.write_text("\n".join(examples("toml")))
    _, large = load(path).triggers
    matches = compile_filters(large.filter_patterns)
    assert matches is not None

    def order(total: str) -> dict[str, Any]:
        return {"eventName": "INSERT", "dynamodb": {"NewImage": {"total": {"N": total}}}}

    assert matches(order("1000"))
    assert not matches(order("999.99"))


def test_the_page_names_every_setting() -> None:
    from partita.foundation.server_settings import TriggerSettings

    for name in TriggerSettings.__struct_fields__:
        assert f"`{name}`" in PAGE, f"{name} is not on the page"
