"""A private copy of MySQL is MySQL; MariaDB's answer to its statements would prove nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from partita_migrate.proving.prove import test as prove
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from testkit.data.moves import designed
from testkit.servers.database_servers import PASSWORD, DatabaseServer, find, mysqld

from .test_prove import SINGLE

SCHEMA = """
CREATE TABLE page (id INT PRIMARY KEY, title VARCHAR(40) COLLATE utf8mb4_general_ci NOT NULL);
INSERT INTO page VALUES (1, 'One'), (2, 'Two');
"""
PATTERNS = {
    "page": "SELECT * FROM page WHERE id = ?",
    "rename": "UPDATE page SET title = ? WHERE id = ?",
}


@pytest.mark.parametrize(
    ("has_mysqld", "verdict", "why"), [(True, "proven", ""), (False, "unproven", "MySQL's mysqld")]
)
def test_a_write_is_proven_where_mysql_is_installed(
    *,
    mysql: DatabaseServer,
    tmp_path: Path,
    endpoint: str,
    monkeypatch: pytest.MonkeyPatch,
    has_mysqld: bool,
    verdict: str,
    why: str,
) -> None:
    server, others = Path(str(mysqld())), find("mariadbd")
    if not has_mysqld and (others is None or server.parent == Path("/usr/sbin")):
        pytest.skip("MariaDB is not installed, or MySQL is in its place")
    programs = server.parent if has_mysqld else tmp_path / "programs"
    if not has_mysqld:
        programs.mkdir()
        (programs / "mysqld").symlink_to(str(others))
    folder = designed(tmp_path / "folder", mysql.create("copied", SCHEMA), PATTERNS)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin")

    run = prove(folder, name=SINGLE, endpoint=endpoint)

    found = {one.pattern: one for one in run.functional}
    assert found["page"].verdict == "proven"
    assert found["rename"].verdict == verdict
    assert why in found["rename"].why


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)
