"""One server for all proofs, and the shop as a migration folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from partita.testing import server as dynamodb
from partita_migrate.workspace.migration_folder import Folder
from testkit.data import shop
from testkit.data.moves import designed, sqlite_database


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    with dynamodb() as url:
        yield url


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
