"""Where Partita answers otherwise than DynamoDB Local on purpose, and why.

The service is the measure. DynamoDB Local has older texts in many places, checks some things in
another order and does not know some features; where the service's own answer is known, Partita
gives that one. The list itself is `differences.txt`, in paragraphs of lines that begin with a word:

* `reason` and `source` hold for the paragraphs that follow;
* `local` and `partita` are what the two answer, as `str(Answer)` writes it, with `$name` for
  anything (the same thing wherever the name stands again) and `\\s` for a space at the end;
* `case` and `on` say where: in these cases, on these operations; `step` is the number of the
  request in its case. What is not said is not looked at.

An entry that names its case goes before one that does not. An entry that no longer differs, or is
never met, makes the suite fail, and so does one whose sides are not what the servers said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LIST = Path(__file__).with_name("differences.txt")


@dataclass(frozen=True)
class Difference:
    reason: str
    source: str
    local: str
    partita: str
    cases: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    step: int | None = None

    def meets(self, case: str, step: int, operation: str, local: str) -> bool:
        """Whether this is about that request, and DynamoDB Local says what it is listed with."""
        return (
            (not self.cases or case in self.cases)
            and (not self.operations or operation in self.operations)
            and self.step in (None, step)
            and _pattern(self.local).fullmatch(local) is not None
        )

    def expects(self, local: str, partita: str) -> bool:
        """Whether Partita says what it is listed with."""
        met = _pattern(self.local).fullmatch(local)
        assert met is not None
        pattern = _pattern(self.partita, tuple(met.groupdict().items()))
        return pattern.fullmatch(partita) is not None


@cache
def _pattern(side: str, known: tuple[tuple[str, str], ...] = ()) -> re.Pattern[str]:
    """The side as a regular expression; what is known already must be met again."""
    filled = dict(known)
    parts: list[str] = []
    for number, part in enumerate(re.split(r"\$([a-z]+)", side)):
        if number % 2 == 0:
            parts.append(re.escape(part))
        elif part in filled:
            parts.append(re.escape(filled[part]))
        elif f"(?P<{part}>.*)" in parts:
            parts.append(f"(?P={part})")
        else:
            parts.append(f"(?P<{part}>.*)")
    return re.compile("".join(parts), re.DOTALL)


def _read(text: str) -> Iterator[Difference]:
    reason = source = ""
    for paragraph in text.split("\n\n"):
        said: dict[str, list[str]] = {}
        for line in paragraph.strip("\n").split("\n"):
            word, _, rest = line.partition(" ")
            said.setdefault(word, []).append(re.sub(r"\\s$", " ", rest.strip()))
        if "reason" in said:
            reason, source = " ".join(said["reason"]), " ".join(said["source"])
        if "local" in said:
            yield Difference(
                reason,
                source,
                said["local"][0],
                said["partita"][0],
                tuple(said.get("case", ())),
                tuple(" ".join(said.get("on", ())).split()),
                int(said["step"][0]) if "step" in said else None,
            )


def read(path: Path) -> tuple[Difference, ...]:
    """The entries of a list, those that name a case first."""
    entries = _read(path.read_text("utf-8"))
    return tuple(sorted(entries, key=lambda difference: not difference.cases))


DIFFERENCES = read(LIST)


def difference(case: str, step: int, operation: str, local: str) -> Difference | None:
    """The intended difference that is listed for that request, if there is one."""
    return next((one for one in DIFFERENCES if one.meets(case, step, operation, local)), None)
