"""Types of PostgreSQL whose literals and order differ from those of their texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita_migrate.proving.prove import test as prove
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from testkit.data.moves import designed
from testkit.servers.database_servers import PASSWORD, DatabaseServer

from .test_prove import WIDE, verdicts

PORTS = """
CREATE TABLE ports (code TEXT PRIMARY KEY, zone INT NOT NULL, opened TIMESTAMP(3) NOT NULL,
    turnaround INTERVAL NOT NULL, is_open BOOLEAN);
INSERT INTO ports VALUES ('A', 1, '2024-01-01', '1 day', true),
    ('B', 1, '2024-01-01 00:00:00.5', '25 hours', false), ('C', 1, '2024-01-02', '1 mon', NULL);
"""
PATTERNS = {
    "opened at": "SELECT code FROM ports WHERE opened = '2024-01-01'",
    "by turnaround": "SELECT code FROM ports WHERE zone = ? ORDER BY turnaround",
    "outside": "SELECT code FROM ports WHERE zone = ? AND code NOT BETWEEN ? AND ? ORDER BY code",
    "not open": "SELECT code FROM ports WHERE zone = ? AND is_open IS NOT TRUE",
}


def test_they_are_proven_or_said_to_be_unserved(
    postgresql: DatabaseServer, tmp_path: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)
    folder = designed(tmp_path / "folder", postgresql.create("ports", PORTS), PATTERNS)
    run = prove(folder, name=WIDE, endpoint=endpoint)
    assert verdicts(run) == {
        "opened at": "proven",
        "by turnaround": "unserved",
        "outside": "proven",
        "not open": "proven",
    }
