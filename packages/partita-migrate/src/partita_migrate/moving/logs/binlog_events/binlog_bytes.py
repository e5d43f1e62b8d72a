"""Reads the bytes of a binlog event from the front, with the number formats that it packs."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

_DIGITS = 9
_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""Bytes that so many digits of a DECIMAL take."""


class EventBytes:
    """The unread rest of an event."""

    __slots__ = ("content", "place")

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.place = 0

    def take(self, size: int) -> bytes:
        self.place += size
        return self.content[self.place - size : self.place]

    def little(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def big(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def packed(self) -> int:
        number, self.place = packed_number(self.content, self.place)
        return number

    @property
    def is_empty(self) -> bool:
        return self.place >= len(self.content)


def packed_number(content: bytes, place: int) -> tuple[int, int]:
    """Returns a length-encoded integer of MySQL's protocol and the position after it."""
    first = content[place]
    if first < 0xFB:
        return first, place + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(content[place + 1 : place + 1 + size], "little"), place + 1 + size


def decimal_reader(precision: int, scale: int) -> Callable[[EventBytes], Decimal]:
    """Returns a reader of DECIMAL(precision, scale).

    Nine digits are packed into four bytes and the rest into as few as hold them; the bytes of a
    negative number are inverted.
    """
    whole, whole_rest = divmod(precision - scale, _DIGITS)
    fraction, fraction_rest = divmod(scale, _DIGITS)
    widths = [_BYTES[whole_rest], *[4] * (whole + fraction), _BYTES[fraction_rest]]
    digits = [whole_rest, *[_DIGITS] * (whole + fraction), fraction_rest]
    size = sum(widths)

    def read(data: EventBytes) -> Decimal:
        content = bytearray(data.take(size))
        is_negative = not content[0] & 0x80
        content[0] ^= 0x80
        if is_negative:
            content = bytearray(byte ^ 0xFF for byte in content)
        place, text = 0, ""
        for width, count in zip(widths, digits, strict=True):
            if width:
                text += f"{int.from_bytes(content[place : place + width], 'big'):0{count}}"
            place += width
        # Built from its text, because Decimal arithmetic would round to 28 digits.
        number = Decimal(f"{text}E-{scale}")
        return number.copy_negate() if is_negative and number else number

    return read
