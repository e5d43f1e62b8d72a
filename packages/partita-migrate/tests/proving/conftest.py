"""One server for all proofs, and the shop as a migration folder."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from partita.migrate.designing.model import model
from partita.migrate.folder import Folder
from partita.migrate.understanding.analyze import analyze
from partita.migrate.understanding.plan import plan
from partita.testing import server as dynamodb

from . import shop


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    with dynamodb() as url:
        yield url


QUICK = "\n[test]\nload_calls = 0\nrecovery = false\n"
"""For tests of patterns alone."""
KEEPING = f"foreign_keys = true\n{QUICK}"
"""SQLite as an application uses it that has its foreign keys kept."""


def designed(
    path: Path, url: str, patterns: dict[str, str] = shop.PATTERNS, more: str = QUICK
) -> Folder:
    """A folder with both designs for some patterns."""
    path.mkdir(exist_ok=True)
    (path / "migration.toml").write_text(f'[source]\nurl = "{url}"\n{more}')
    (path / "patterns.toml").write_text(shop.patterns_toml(patterns))
    folder = Folder.open(path)
    plan(folder)
    analyze(folder)
    model(folder)
    return folder


def sqlite_database(path: Path, script: str) -> str:
    connection = sqlite3.connect(path)
    connection.executescript(f"PRAGMA synchronous = OFF;\nBEGIN;\n{script}\nCOMMIT;")
    connection.close()
    return f"sqlite:///{path}"


@pytest.fixture(scope="session")
def shop_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return sqlite_database(tmp_path_factory.mktemp("shop") / "shop.db", shop.script("sqlite"))


@pytest.fixture(scope="session")
def shop_folder(tmp_path_factory: pytest.TempPathFactory, shop_url: str) -> Folder:
    return designed(tmp_path_factory.mktemp("shop-folder"), shop_url)


Narrowed = Callable[..., Folder]


@pytest.fixture
def narrowed(shop_folder: Folder, tmp_path: Path) -> Narrowed:
    """The shop's folder with only some of its patterns."""

    def narrow(*names: str) -> Folder:
        shutil.copytree(shop_folder.path, tmp_path / "narrow")
        chosen = {name: shop.PATTERNS[name] for name in names}
        (tmp_path / "narrow" / "patterns.toml").write_text(shop.patterns_toml(chosen))
        return Folder.open(tmp_path / "narrow")

    return narrow
