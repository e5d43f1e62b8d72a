"""Signed visits: forged, stale and repeated ones go to quarantine with their reason."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from page_hit_counter.processing.page_visits import PageVisit
from page_hit_counter.processing.visit_signatures import (
    SignatureSettings,
    VisitSignatures,
    read_keys,
)
from testkit.data.page_hit_pipeline import Pipeline, asset_id, put_assets, running, wait_for
from testkit.servers import processes

from .conftest import ASSETS, SHORT_PERIODS

SECRET = "a-secret-of-enough-characters"
KEYS = f"""
[[keys]]
id = "now"
secret = "{SECRET}"

[[keys]]
id = "over"
secret = "{SECRET}"
until = 2020-01-01T00:00:00Z
"""
SETTINGS = (
    SHORT_PERIODS
    + """
interval_seconds = 1

[signatures]
mode = "require"
keys = "keys.toml"
window_seconds = 60
"""
)
WEB, COUNTING = "processor,api", "counter,consumer"


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    folder = tmp_path_factory.mktemp("signed")
    (folder / "keys.toml").write_text(KEYS)
    with running(folder, SETTINGS, parts=(WEB, COUNTING)) as pipeline:
        put_assets(pipeline.client(), ASSETS)
        yield pipeline


def signature(
    visit_id: str, asset: int, moment: int, key: str = "now", secret: str = SECRET
) -> str:
    """Makes a signature as a site would, following the documentation."""
    text = f"{key}\n{visit_id}\n{asset}\n{moment}"
    code = hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()
    return f"{key}.{moment}.{code}"


def visit(**changed: Any) -> dict[str, Any]:
    """Makes a signed visit; `asset`, `key`, `secret` and `at` are the values that were signed."""
    name = changed.pop("visitId", uuid4().hex)
    at = changed.pop("at", int(time.time()))
    asset = changed.pop("asset", asset_id(0))
    more = {part: changed.pop(part) for part in ("key", "secret") if part in changed}
    made = {
        "assetId": asset_id(0),
        "sectionId": 1,
        "paidType": "free",
        "visitor": f"visitor {name}",
        "visitId": name,
        "signature": signature(name, asset, at, **more),
    }
    return made | changed


def outcome(pipeline: Pipeline, event: dict[str, Any], **headers: str) -> dict[str, str]:
    status, answer = pipeline.post([event], headers)
    assert status == 200, answer
    found: dict[str, str] = answer["events"][0]
    return found


def quarantined(reason: str) -> dict[str, str]:
    return {"status": "quarantined", "reason": reason}


def test_a_signed_visit_counts_once(signed: Pipeline) -> None:
    event = visit()
    assert outcome(signed, event) == {"status": "accepted"}
    assert outcome(signed, event) == quarantined("replayed")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"signature": ""}, "unsigned"),
        ({"visitId": ""}, "unsigned"),
        ({"signature": "now.x.y"}, "forged"),
        ({"signature": "now"}, "forged"),
        ({"secret": "another-secret-of-the-site"}, "forged"),
        ({"asset": asset_id(2)}, "forged"),
        ({"key": "nobody"}, "unknown-key"),
        ({"key": "over"}, "ended-key"),
        ({"at": int(time.time()) - 3_600}, "stale"),
        ({"at": int(time.time()) + 3_600}, "stale"),
        ({"time": time.time() - 600}, "stale"),
    ],
)
def test_what_is_wrong_with_a_visit_is_the_reason(
    signed: Pipeline, changed: dict[str, Any], reason: str
) -> None:
    assert outcome(signed, visit(**changed)) == quarantined(reason)


def test_a_case_can_be_released_and_its_visit_then_counts(signed: Pipeline) -> None:
    event = visit(signature="", sectionId=77, visitor="an old application")
    assert outcome(signed, event) == quarantined("unsigned")
    _, _, listed = signed.get("/quarantine?brand=abc")
    (case,) = [each for each in listed["cases"] if each["subject"] == "an old application"]
    assert (case["reason"], case["status"], case["hits"]) == ("unsigned", "quarantined", 1)
    status, _, _ = signed.request("api", "POST", f"/quarantine/{case['id']}/release?brand=abc")
    assert status == 200

    def hits() -> int:
        _, _, answer = signed.get("/?brand=abc&period=day&section=77")
        return sum(hit["hits"] for hit in answer["lists"][0]["hits"])

    assert wait_for(hits, 30) == 1


def test_a_batch_that_its_sender_repeats_is_not_a_replay(signed: Pipeline) -> None:
    event, key = visit(), {"Idempotency-Key": uuid4().hex}
    assert outcome(signed, event, **key) == {"status": "accepted"}
    assert outcome(signed, event, **key) == {"status": "accepted"}
    assert outcome(signed, event) == quarantined("replayed")


def test_a_processor_that_was_killed_still_knows_which_visits_came(signed: Pipeline) -> None:
    event = visit()
    assert outcome(signed, event) == {"status": "accepted"}
    signed.kill(WEB)
    assert outcome(signed, event) == quarantined("replayed")


def test_keys_rotate_without_a_restart(signed: Pipeline) -> None:
    path = signed.folder / "keys.toml"
    rotated = processes.run("pagehits", "keys", "rotate", path, "--overlap-hours", "1")
    assert rotated.returncode == 0, rotated.stderr
    assert path.stat().st_mode & 0o077 == 0
    kept = read_keys(path)
    assert "now" in kept and "over" not in kept and len(kept) == 2
    made = processes.run("pagehits", "sign", path, "--visit", "by-cli", "--asset", str(asset_id(0)))
    assert not made.stdout.startswith("now.")
    event = visit(visitId="by-cli") | {"signature": made.stdout.strip()}
    wait_for(lambda: outcome(signed, event) != quarantined("unknown-key"), 10)
    assert outcome(signed, event) == quarantined("replayed")
    assert outcome(signed, visit()) == {"status": "accepted"}, "the old key signs for an hour more"


def test_observing_counts_everything(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(KEYS)
    settings = SignatureSettings(mode="observe", keys=str(path))
    event = PageVisit(1, 1, "free", time=time.time())
    assert VisitSignatures(settings, 60).reasons([event], None, time.time()) == ["unsigned"]


def test_the_command_says_what_is_wrong_with_a_file_of_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text('[[keys]]\nid = "one"\nsecret = "short"\n')
    done = processes.run("pagehits", "sign", path, "--visit", "v", "--asset", "1")
    assert done.returncode == 1 and "secret" in done.stderr and "Traceback" not in done.stderr
    assert json.dumps(done.stdout) == '""'
