"""What `partita migrate test` has proved: a pattern without a proof is not called served."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from partita.migrate.model.files import CHOSEN

TESTED = "test.json"

Proof = Literal["proven", "differs", "unproven", "unserved"]


class PatternProof(Struct, frozen=True, kw_only=True):
    pattern: str
    verdict: Proof = "unproven"
    why: str = ""


class TestedDesign(Struct, frozen=True, kw_only=True):
    """As much of `test.json` as the report needs."""

    model: str = CHOSEN
    functional: list[PatternProof] = field(default_factory=list)

    def proof(self, pattern: str) -> Proof:
        return next((one.verdict for one in self.functional if one.pattern == pattern), "unproven")
