"""Keys and names must not control the terminal."""

from __future__ import annotations

import pytest

from partita.server.monitoring.display_format import shown_key, shown_number, shown_seconds


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("C1", "C1"),
        ("Zoë 日本", "Zoë 日本"),
        ("\x1b[31mred\n", "\\x1b[31mred\\n"),
        ("a\u202eb", "a\\u202eb"),
        ("x" * 2048, "x" * 57 + "..."),
    ],
)
def test_a_key_is_one_line_of_visible_characters(key: str, shown: str) -> None:
    assert shown_key(key) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0.0, "0"), (0.5, "0.5"), (1234567.0, "1234567"), (12345678.5, "12345678.5")],
)
def test_a_number_keeps_its_digits(number: float, shown: str) -> None:
    assert shown_number(number) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.5, "0 s"), (119, "119 s"), (7100, "118 min"), (200_000, "2 d")]
)
def test_a_time_is_told_in_its_unit(seconds: float, shown: str) -> None:
    assert shown_seconds(seconds) == shown
