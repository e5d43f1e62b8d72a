"""Every example of docs/tutorials/count-page-hits.md does what it shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import msgspec

from page_hit_counter.pagehits_settings import PageHitSettings, load
from testkit import ROOT
from testkit.data.page_hit_pipeline import Pipeline, wait_for

PAGE = (ROOT / "docs" / "tutorials" / "count-page-hits.md").read_text()


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_an_asset_is_put_and_its_visits_are_listed(short: Pipeline) -> None:
    for program in examples("python"):
        program = program.replace("http://127.0.0.1:8000", short.endpoint)
        program = program.replace("http://127.0.0.1:8080", short.url("processor"))
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
        )
    answer = msgspec.json.decode(done.stdout)
    assert [event["status"] for event in answer["events"]] == ["accepted", "refused"]
    target = "/?brand=abc&period=day&section=563"
    wait_for(lambda: short.get(target)[2]["lists"][0]["hits"])
    shown = msgspec.json.decode(examples("json")[0])["lists"][0]
    (hit,) = short.get(target)[2]["lists"][0]["hits"]
    assert hit == {**shown["hits"][0], "hits": 1}


def test_the_settings_on_the_page_are_the_defaults_and_all_there_are(tmp_path: Path) -> None:
    path = tmp_path / "pagehits.toml"
    path.write_text(examples("toml")[0])
    shown = msgspec.structs.asdict(load(path))
    defaults = msgspec.structs.asdict(PageHitSettings())
    # `config`, the file that they were read from, is filled in.
    assert shown.pop("config") == str(path) and not defaults.pop("config")
    assert {name for name in shown if shown[name] != defaults[name]} == {"brands", "urls"}
    for name in defaults:
        assert re.search(rf"^\[*{name}\b", examples("toml")[0], re.MULTILINE), name
