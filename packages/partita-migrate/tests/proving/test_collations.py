"""Keys compare texts as MariaDB's collations do; the most common one is checked in every letter."""

from __future__ import annotations

import unicodedata

import pytest

from partita_migrate.understanding.schema.text_folds import FOLDS
from testkit.servers.database_servers import DatabaseServer

COLLATION = "utf8mb4_general_ci"
NO_LETTERS = ("Cn", "Co", "Cs")


def test_a_key_has_the_weight_of_every_letter(mariadb: DatabaseServer) -> None:
    codes = range(0x21, 0x10000)
    letters = [one for one in map(chr, codes) if unicodedata.category(one) not in NO_LETTERS]
    connection = mariadb.connect()
    weights: dict[str, str] = {}
    try:
        cursor = connection.cursor()
        for start in range(0, len(letters), 4000):
            some = letters[start : start + 4000]
            asked = (f"_utf8mb4 x'{one.encode().hex()}' COLLATE {COLLATION}" for one in some)
            cursor.execute("SELECT " + ", ".join(f"HEX(WEIGHT_STRING({one}))" for one in asked))
            weights |= dict(zip(some, cursor.fetchone(), strict=True))
    finally:
        connection.close()
    fold = FOLDS["general"]
    differing = [one for one in letters if weights[one] != f"{ord(fold(one)):04X}"]
    assert differing == []


def test_what_lies_beyond_the_first_plane_is_one_letter(mariadb: DatabaseServer) -> None:
    connection = mariadb.connect()
    try:
        cursor = connection.cursor()
        cursor.execute(f"SELECT _utf8mb4'😀' = _utf8mb4'😎' COLLATE {COLLATION}")
        assert cursor.fetchone() == (1,)
    finally:
        connection.close()
    assert FOLDS["general"]("😀") == FOLDS["general"]("😎")


@pytest.mark.parametrize("collation", ["unicode_ci", "unicode_520_ci", "uca1400_ai_ci"])
def test_letters_that_all_collations_of_unicode_take_alike_or_tell_apart(
    mariadb: DatabaseServer, collation: str
) -> None:
    pairs = ["ée", "Éé", "ßss", "œoe", "йи", "Йй", "\u0131i", "ñn", "äa", "ÅA", "çc", "ώΩ", "ab"]
    fold = FOLDS["ai"]
    connection = mariadb.connect()
    try:
        cursor = connection.cursor()
        for one, other in ((pair[0], pair[1:]) for pair in pairs):
            cursor.execute(
                f"SELECT _utf8mb4'{one}' = _utf8mb4'{other}' COLLATE utf8mb4_{collation}"
            )
            assert cursor.fetchone() == (int(fold(one) == fold(other)),), (one, other)
    finally:
        connection.close()
