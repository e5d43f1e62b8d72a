"""The backends of the suite: one fixture for each, a boto3 resource with the prepared tables.

Each is used as its users would: moto's decorator around every test, tables created and deleted in
DynamoDB Local, Partita in process or behind a port, and a branch of a prepared database.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import boto3
import pytest

from benchmarks.servers import peers
from benchmarks.servers.measured_servers import SERVERS, Running
from benchmarks.suite.tables import prepare, remove

REGION = "us-east-1"

FIXTURES = {
    "partita-branch": "branched",
    "partita-in-process": "in_process",
    "partita-server": "served",
    "moto": "mocked",
    "moto-server": "mocked_server",
    "dynamodb-local": "local",
}


def connect(url: str) -> Any:
    return boto3.resource("dynamodb", endpoint_url=url, region_name=REGION)


# Partita


@pytest.fixture(scope="session")
def dynamodb_prepared(dynamodb_prepared: Any) -> Any:
    prepare(dynamodb_prepared.resource())
    return dynamodb_prepared


@pytest.fixture
def branched(dynamodb_branch: Any) -> Any:
    return dynamodb_branch


@pytest.fixture
def in_process() -> Iterator[Any]:
    from partita import testing

    with testing.in_process() as session:
        dynamodb = session.resource("dynamodb")
        prepare(dynamodb)
        yield dynamodb


@pytest.fixture
def served(dynamodb: Any) -> Any:
    """Prepares the tables; the plugin's fixture removes them."""
    prepare(dynamodb)
    return dynamodb


# moto


@pytest.fixture(scope="session")
def moto() -> Any:
    """Imports moto; the benchmark's own libraries take precedence over those installed with it."""
    installed = peers.moto().parent.parent
    sys.path += map(str, installed.glob("lib/python*/site-packages"))
    return import_module("moto")


@pytest.fixture
def mocked(moto: Any) -> Iterator[Any]:
    with moto.mock_aws():
        dynamodb = boto3.resource("dynamodb", region_name=REGION)
        prepare(dynamodb)
        yield dynamodb


@pytest.fixture(scope="session")
def mocked_address() -> Iterator[str]:
    yield from _running("moto")


@pytest.fixture
def mocked_server(mocked_address: str) -> Iterator[Any]:
    yield from _with_tables(mocked_address)


# DynamoDB Local


@pytest.fixture(scope="session")
def local_address() -> Iterator[str]:
    yield from _running("dynamodb-local")


@pytest.fixture
def local(local_address: str) -> Iterator[Any]:
    yield from _with_tables(local_address)


def _running(name: str) -> Iterator[str]:
    """Runs a server of that name in memory, for the whole session."""
    (server,) = (one for one in SERVERS if (one.name, one.mode) == (name, "memory"))
    with TemporaryDirectory() as folder, closing(Running(server, Path(folder) / "data")) as running:
        yield f"http://127.0.0.1:{running.port}"


def _with_tables(url: str) -> Iterator[Any]:
    dynamodb = connect(url)
    prepare(dynamodb)
    yield dynamodb
    remove(dynamodb)
