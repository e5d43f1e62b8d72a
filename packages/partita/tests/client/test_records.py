"""Records in a table: they are read as they were written, and no item is too long."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.client import record_table
from partita.foundation.service_limits import ITEM_BYTES_MAX, KB


@given(st.text())
def test_a_short_record_is_text_that_people_can_read(text: str) -> None:
    item, rest = record_table.pack("p", "s", text.encode(), {"n": {"N": "1"}})
    assert rest == []
    assert item["record"] == {"S": text}
    assert item["n"] == {"N": "1"}
    assert record_table.unpack(item, rest) == text.encode()


@pytest.mark.parametrize("size", [64 * KB, 64 * KB + 1, 350 * KB, 351 * KB, 1000 * KB, 3000 * KB])
@pytest.mark.parametrize("is_random", [True, False])
def test_a_long_record_is_kept_in_items_that_fit(size: int, is_random: bool) -> None:
    chance = random.Random(size)
    letters = "".join(chances if is_random else "a" for chances in chance.choices(ALPHABET, k=size))
    item, rest = record_table.pack("p", "s", letters.encode(), {})
    assert [record_table.key("p", one["sk"]["S"]) for one in rest] == record_table.rest_keys(item)
    for one in (item, *rest):
        content = one.get("record") or one["packed"]
        assert len(next(iter(content.values()))) * 3 // 4 < ITEM_BYTES_MAX
    assert record_table.unpack(item, rest) == letters.encode()


ALPHABET = [chr(code) for code in range(33, 127)]


def test_two_records_of_one_key_do_not_share_their_rest() -> None:
    record = random.Random(1).randbytes(1000 * KB).hex().encode()
    first, second = (record_table.pack("p", "s", record, {})[0] for _ in range(2))
    assert first["rest"] != second["rest"]
