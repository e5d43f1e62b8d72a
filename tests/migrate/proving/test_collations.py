"""Keys compare texts as MariaDB's most usual collation does."""

from __future__ import annotations

import unicodedata

from partita.migrate.model.key_texts import FOLDS

from ..servers import DatabaseServer

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
