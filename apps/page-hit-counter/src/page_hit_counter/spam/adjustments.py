"""Adjustments: signed hits on the stream, which change what was already counted."""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

import msgspec

PREFIX = b'{"adjustment":'


class AdjustmentRow(NamedTuple):
    """Hits of one key of the counter. The time says which windows they belong to."""

    brand: str
    asset_id: int
    section_id: int
    paid_type: str
    resource_type: str
    time: int
    hits: int


class Adjustment(msgspec.Struct, frozen=True):
    """A record of the stream that changes counts. An adjustment whose id arrives again is
    ignored."""

    id: str = msgspec.field(name="adjustment")
    rows: tuple[AdjustmentRow, ...]

    @property
    def mark(self) -> str:
        """A short hash of the id, which the counter remembers."""
        return blake2b(self.id.encode(), digest_size=8).hexdigest()

    def encode(self) -> bytes:
        return _encoder.encode(self)

    @staticmethod
    def decode(data: bytes) -> Adjustment:
        return _decoder.decode(data)


def is_adjustment(data: bytes) -> bool:
    """True when a record of the stream is an adjustment; other records hold visits."""
    return data.startswith(PREFIX)


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Adjustment)
