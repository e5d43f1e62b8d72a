"""Compares keys with MariaDB's collations: equality and order of characters and random texts."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable

import pytest

from partita_migrate.understanding.plan_stage import plan
from partita_migrate.understanding.schema.collations import (
    COLLATIONS,
    FOLDINGS,
    Collation,
    collation_file,
)
from partita_migrate.understanding.schema.inventory import read_inventory
from partita_migrate.workspace.migration_folder import Folder
from testkit.servers.database_servers import DatabaseServer

from ..conftest import MakeFolder

PLANE = 0x10000
LAST = 0x10FFFF
TABLE = "CREATE TABLE words (id INT PRIMARY KEY, word VARCHAR(20) CHARACTER SET {} COLLATE {});"
EIGHT_BITS = ["latin1_swedish_ci", "latin1_german2_ci", "latin1_general_cs", "cp1251_general_ci"]
UNICODE = [
    "utf8mb4_unicode_ci", "utf8mb4_unicode_520_ci", "utf8mb4_uca1400_ai_ci",
    "utf8mb4_unicode_nopad_ci", "utf8mb4_uca1400_nopad_ai_ci", "utf8mb3_unicode_ci",
    "utf8mb4_swedish_ci", "utf8mb4_spanish2_ci", "utf8mb4_croatian_ci", "utf8mb4_danish_ci",
]  # fmt: skip

Planned = Callable[[str], Folder]


@pytest.fixture
def planned(mariadb: DatabaseServer, make_folder: MakeFolder) -> Planned:
    """Returns the folder of a source with one collation and an empty table `words`."""

    def make(collation: str) -> Folder:
        charset = collation.partition("_")[0]
        folder = make_folder(mariadb.create("collated", TABLE.format(charset, collation)))
        plan(folder)
        return folder

    return make


def assert_same_order(mariadb: DatabaseServer, collation: str, texts: list[str]) -> None:
    """Compares the order of keys with the ranks of the server, where equal texts share a rank."""
    fold = FOLDINGS[collation]
    connection = mariadb.connect("collated")
    ranks: dict[int, int] = {}
    try:
        cursor = connection.cursor()
        cursor.execute("DELETE FROM words")
        for start in range(0, len(texts), 5000):
            rows = enumerate(texts[start : start + 5000], start)
            values = (f"({place}, _utf8mb4 X'{one.encode().hex()}')" for place, one in rows)
            cursor.execute(f"INSERT INTO words VALUES {', '.join(values)}")
        cursor.execute("SELECT id, DENSE_RANK() OVER (ORDER BY word) FROM words")
        ranks = dict(cursor.fetchall())
    finally:
        connection.close()
    keys = [fold(one) for one in texts]
    places = {key: place for place, key in enumerate(sorted(set(keys)), 1)}
    differing = [one for place, one in enumerate(texts) if ranks[place] != places[keys[place]]]
    assert differing == []


def of_charset(collation: str, texts: list[str]) -> list[str]:
    """Those that a column holds."""
    charset = collation.partition("_")[0]
    if charset == "utf8mb3":
        return [one for one in texts if max(one, default="") < "\U00010000"]
    if charset in ("latin1", "cp1251"):
        # MySQL's latin1 is cp1252.
        codec = {"latin1": "cp1252"}.get(charset, charset)
        return [one for one in texts if one.encode(codec, "ignore").decode(codec) == one]
    return texts


def characters(end: int) -> list[str]:
    codes = [code for code in range(end) if not 0xD800 <= code < 0xE000]
    return [chr(code) for code in codes]


def decomposed() -> list[str]:
    found = {unicodedata.normalize("NFD", one) for one in characters(PLANE)}
    return sorted(one for one in found if 1 < len(one) < 20)


def random_texts(collation: str, count: int) -> list[str]:
    chance = random.Random(collation)
    joined = [one for one in FOLDINGS[collation].collation.texts if len(one) > 1]
    pools = [
        list("aAbBcChHlLnNjJzZ0129 _-.,@\t\n"),
        list(" \t\nA_\u00a0\u0001"),
        of_charset(collation, characters(0x250)),
        of_charset(collation, characters(0x530)),
        of_charset(collation, characters(PLANE)),
        joined or ["x"],
    ]
    found = []
    for _ in range(count):
        pool = chance.choice(pools)
        found.append("".join(chance.choices(pool, k=chance.randrange(6)))[:20])
        if chance.random() < 0.5:
            found.append((found[-1][: chance.randrange(4)] + chance.choice(pool)).swapcase()[:20])
    return of_charset(collation, found)


@pytest.mark.parametrize("collation", EIGHT_BITS)
def test_keys_of_eight_bits_are_in_the_order_of_the_server(
    mariadb: DatabaseServer, planned: Planned, collation: str
) -> None:
    planned(collation)
    known = of_charset(collation, characters(PLANE))
    assert_same_order(mariadb, collation, [*known, *random_texts(collation, 2000)])


@pytest.mark.parametrize(
    "collation",
    [
        "utf8mb4_unicode_520_ci",
        "utf8mb4_uca1400_ai_ci",
        *(pytest.param(one, marks=pytest.mark.soak) for one in UNICODE),
    ],
)
def test_keys_of_unicode_are_in_the_order_of_the_server(
    request: pytest.FixtureRequest, mariadb: DatabaseServer, planned: Planned, collation: str
) -> None:
    planned(collation)
    is_soak = request.node.get_closest_marker("soak") is not None
    end = LAST + 1 if is_soak else 0x3100
    known = of_charset(collation, [*characters(end), *decomposed(), "\U0010ffff", "😀", "日", "한"])
    assert_same_order(mariadb, collation, known)
    assert_same_order(mariadb, collation, random_texts(collation, 50_000 if is_soak else 4000))


@pytest.mark.parametrize(
    ("collation", "why"),
    [
        ("utf8mb4_uca1400_as_ci", "accents or case"),
        ("utf8mb4_thai_520_w2", "accents or case"),
        ("latin2_czech_cs", "accents or case"),
        ("gbk_chinese_ci", "characters of gbk"),
        pytest.param("utf8mb4_myanmar_ci", "sequence of its letters", marks=pytest.mark.soak),
    ],
)
def test_a_collation_that_keys_cannot_say_has_a_reason(
    planned: Planned, collation: str, why: str
) -> None:
    folder = planned(collation)
    assert why in folder.read_json(collation_file(collation), Collation).not_in_keys
    assert f"word of words are compared by {collation}" in (folder.path / "plan.md").read_text()


def test_latin_is_readable_and_files_are_small_and_stable(planned: Planned) -> None:
    collation = "utf8mb4_unicode_ci"
    folder = planned(collation)
    fold = FOLDINGS[collation]
    texts = ["Müller", "smörgås 12", "J.Doe-2/3", "Œuvre", "straße", "ЖУК", "日本", "한국"]
    assert [fold(text) for text in texts] == [
        "MULLER", "SMORGAS 12", "J.DOE-2/3", "OEUVRE", "STRASSE", "ЖУК", "日本", "한국",
    ]  # fmt: skip
    path = folder.path / collation_file(collation)
    before = path.read_bytes()
    assert len(before) < 250_000
    path.unlink()
    plan(folder)
    assert path.read_bytes() == before


def test_only_collations_that_keys_have_no_rule_for_are_asked(
    mariadb: DatabaseServer, make_folder: MakeFolder
) -> None:
    folder = make_folder(
        mariadb.create(
            "ruled",
            "CREATE TABLE t (a VARCHAR(9) COLLATE utf8mb4_general_ci, b VARCHAR(9) COLLATE"
            " utf8mb4_bin, c VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_danish_ci);",
        )
    )
    plan(folder)
    assert [path.stem for path in (folder.path / COLLATIONS).iterdir()] == ["latin1_danish_ci"]
    (table,) = read_inventory(folder).tables
    assert [one.collation for one in table.columns] == ["", "", "latin1_danish_ci"]
