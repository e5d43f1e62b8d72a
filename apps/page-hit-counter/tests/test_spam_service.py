"""In the service, hits are withheld, read, released, and then counted."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from testkit.data.page_hit_pipeline import (
    ONE_PROCESS,
    Pipeline,
    asset_id,
    put_assets,
    running,
    wait_for,
)

from .conftest import SHORT_PERIODS

ASSET = asset_id(0)
SPAM = '\n[spam]\nmode = "filter"\ninterval_seconds = 1\n'


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    settings = SHORT_PERIODS.partition("[spam]")[0] + SPAM
    with running(tmp_path_factory.mktemp("spam"), settings, parts=ONE_PROCESS) as pipeline:
        put_assets(pipeline.client(), 1)
        yield pipeline


def counted(service: Pipeline, code: str) -> int:
    """Returns the hits of the asset in all closed windows of a period."""
    return sum(
        hits
        for (_, period, _), rows in service.windows().items()
        for (_, asset, *_), hits in rows.items()
        if (period, asset) == (code, ASSET)
    )


def test_withheld_hits_count_when_they_are_released(service: Pipeline) -> None:
    visit = {"assetId": ASSET, "sectionId": 7, "paidType": "free", "visitor": "ann"}
    status, answer = service.post([visit] * 10)
    assert status == 200
    assert [event["status"] for event in answer["events"]] == ["accepted"] * 3 + ["quarantined"] * 7
    assert {event.get("reason") for event in answer["events"][3:]} == {"reload"}
    brand = next(brand for brand in ("abc", "def") if cases(service, brand))
    (case,) = cases(service, brand)
    assert (case["reason"], case["subject"], case["hits"]) == ("reload", "ann", 7)
    wait_for(lambda: counted(service, "F") == 3)
    target = f"/quarantine/{case['id']}/release?brand={brand}"
    released, _, content = service.request("processor", "POST", target)
    assert (released, json.loads(content)["status"]) == (200, "released")
    wait_for(lambda: counted(service, "F") == 10)
    wait_for(lambda: counted(service, "H") == 10)
    _, _, summary = service.get(f"/quarantine/summary?brand={brand}", "processor")
    assert summary["mode"] == "filter"
    assert summary["counts"] == {"reload": 7}
    assert [case["status"] for case in summary["cases"]] == ["released"]


def cases(service: Pipeline, brand: str) -> list[dict[str, object]]:
    _, _, answer = service.get(f"/quarantine?brand={brand}", "processor")
    found: list[dict[str, object]] = answer["cases"]
    return found
