"""`partita serve --response-cache`: its sizes, and its metrics."""

from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import Any

import pytest

from testkit.servers import processes

KEY = {"id": {"S": "a"}}
SERVE = ("serve", "--port", "0", "--in-memory")


def read(server: Any, times: int) -> None:
    client = server.client()
    client.create_table(
        TableName="notes",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client.put_item(TableName="notes", Item=KEY)
    for _ in range(times):
        assert client.get_item(TableName="notes", Key=KEY)["Item"] == KEY


def metrics(server: Any) -> dict[str, int]:
    """Returns the metrics of GetItem's response cache, by the ends of their names."""
    with urllib.request.urlopen(f"{server.url}/metrics") as page:
        lines = page.read().decode().splitlines()
    found = [line for line in lines if line.startswith("partita_response_cache")]
    return {
        name.removeprefix("partita_response_cache_"): int(value)
        for line in found
        for name, _, labelled in [line.partition("{")]
        for label, _, value in [labelled.partition("} ")]
        if label == 'operation="GetItem"'
    }


def test_hits_and_misses_are_in_the_metrics(serve: Any) -> None:
    server = serve(*SERVE)
    read(server, 5)
    found = metrics(server)
    assert found.pop("bytes") > 500
    assert found == {"hits_total": 3, "misses_total": 2, "evictions_total": 0, "entries": 1}


@pytest.mark.parametrize("given", ["option", "environment", "file"])
def test_it_can_be_switched_off(serve: Any, tmp_path: Path, given: str) -> None:
    options: list[str] = []
    environment: dict[str, str] = {}
    if given == "option":
        options = ["--response-cache", "off"]
    elif given == "environment":
        environment = {"PARTITA_SERVE_RESPONSE_CACHE": "off"}
    else:
        (tmp_path / "partita.toml").write_text('[serve]\nresponse_cache = "off"\n')
        options = ["--config", str(tmp_path / "partita.toml")]
    server = serve(*SERVE, *options, env={**processes.ENVIRONMENT, **environment})
    read(server, 5)
    assert metrics(server) == {}


def test_its_memory_is_bounded(serve: Any, tmp_path: Path) -> None:
    (tmp_path / "partita.toml").write_text("[serve]\nresponse_cache = 100\n")
    server = serve(*SERVE, "--config", str(tmp_path / "partita.toml"))
    read(server, 4)
    found = metrics(server)
    assert (found["entries"], found["bytes"], found["hits_total"]) == (0, 0, 0)
    assert found["evictions_total"] == 3


def test_what_is_no_number_of_bytes_is_refused_in_words(run: Any) -> None:
    refused = run(*SERVE, "--response-cache", "1MB")
    assert refused.returncode == 2
    assert "'1MB' is neither a number of bytes nor off." in refused.stderr
