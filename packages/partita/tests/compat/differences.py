"""The responses in which Partita intentionally differs from DynamoDB Local, and the reasons.

The service is the measure. DynamoDB Local has older texts in many places, checks some things in
another order and does not know some features; where the service's own answer is known, Partita
gives that one. The list itself is `differences.txt`, in paragraphs of lines that begin with a word:

* `reason` and `source` hold for the paragraphs that follow; each `source` is one of ORIGINS and the
  place in it: which recording, which test;
* `local` and `partita` are what the two answer, as `str(Answer)` writes it, with `$name` for
  anything that stands on both sides, `$asked` for a text of the request, `\\s` for a space at the
  end and `\\n` for a new line;
* `case` and `on` say where: in these cases, on these operations; `#2 #5` behind a case are the
  numbers of the requests in it. What is not said is not looked at.

An entry that names its case goes before one that does not. An entry that no longer differs, or is
never met, makes the suite fail, and so does one whose sides are not what the servers said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .notation import Step

LIST = Path(__file__).with_name("differences.txt")

# Where answers of the service were recorded, or what else tells of them.
ORIGINS = {
    "alternator": "scylladb/scylladb, test/alternator: tests that pass on the service",
    "conformance": "paritysuite/dynamodb-conformance (nubo-db's before): eu-west-2, 2026",
    "dynalite": "architect/dynalite: tests recorded from the service in 2019 and 2020",
    "extenddb": "ExtendDB/extenddb: tests that pass on the service in us-east-1",
    "floci": "floci-io/floci: tests captured from the service in eu-west-2, September 2026",
    "guide": "the developer guide, by the title of the page",
    "issue": "an answer of the service in an issue on GitHub",
    "model": "botocore's service description, by the name of the operation",
    "moto": "getmoto/moto: tests marked aws_verified, in us-east-1",
    "ours": "our own words, where clients look at the type only",
    "parser": "partiql/partiql-lang-kotlin, the open parser behind PartiQL",
    "quirks": "ack-api-quirks, dynamodb: answers of the control plane, live, October 2026",
    "reference": "the API reference, by the name of the operation or type",
    "wire": "recorded from the service in 2026, kept by one of our own tests",
}

ASKED = "asked"


@dataclass(frozen=True)
class Difference:
    reason: str
    sources: tuple[str, ...]
    local: str
    partita: str
    cases: tuple[tuple[str, frozenset[int]], ...] = ()
    """The cases, each with the numbers of its requests; no numbers mean all requests."""
    operations: tuple[str, ...] = ()

    def meets(self, case: str, number: int, step: Step, local: str) -> bool:
        """True when the difference lists this request, with this response of DynamoDB Local."""
        return (
            (not self.cases or self._names(case, number))
            and (not self.operations or step.operation in self.operations)
            and _said(self.local, local, step) is not None
        )

    def expects(self, step: Step, local: str, partita: str) -> bool:
        """True when Partita's response is the listed one."""
        known = _said(self.local, local, step)
        assert known is not None
        known.pop(ASKED, None)
        return _said(self.partita, partita, step, tuple(known.items())) is not None

    def _names(self, case: str, number: int) -> bool:
        return any(name == case and number in (steps or {number}) for name, steps in self.cases)

    @property
    def unbound(self) -> set[str]:
        """Returns the variables that only one side has, which match any text."""
        local, partita = variables(self.local), variables(self.partita)
        return (local ^ partita) - {ASKED}


def variables(side: str) -> set[str]:
    return set(re.findall(r"\$([a-z]+)", side))


def _said(
    side: str, text: str, step: Step, known: tuple[tuple[str, str], ...] = ()
) -> dict[str, str] | None:
    """Returns the values of a side's variables in a text, or None if the text does not match."""
    match = _pattern(side, known).fullmatch(text)
    if match is None:
        return None
    found = match.groupdict()
    return None if ASKED in found and found[ASKED] not in _texts(step.body) else found


def _texts(body: Any) -> set[str]:
    """Returns all texts of a request."""
    if isinstance(body, dict):
        return set(body).union(*map(_texts, body.values()))
    if isinstance(body, list):
        return set().union(*map(_texts, body))
    return {str(body)}


@cache
def _pattern(side: str, known: tuple[tuple[str, str], ...] = ()) -> re.Pattern[str]:
    """Returns a side as a regular expression; variables that have a value already must match it."""
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
    reason = ""
    sources: tuple[str, ...] = ()
    for paragraph in text.split("\n\n"):
        said: dict[str, list[str]] = {}
        for line in paragraph.strip("\n").split("\n"):
            word, _, rest = line.partition(" ")
            said.setdefault(word, []).append(_unescaped(rest.strip()))
        if "reason" in said:
            reason, sources = " ".join(said["reason"]), tuple(said["source"])
        if "local" in said:
            yield Difference(
                reason,
                sources,
                said["local"][0],
                said["partita"][0],
                tuple(map(_case, said.get("case", ()))),
                tuple(" ".join(said.get("on", ())).split()),
            )


def _unescaped(text: str) -> str:
    return re.sub(r"\\s$", " ", text.replace("\\n", "\n"))


def _case(text: str) -> tuple[str, frozenset[int]]:
    numbers = re.search(r"(?: #\d+)+$", text)
    if numbers is None:
        return text, frozenset()
    return text[: numbers.start()], frozenset(map(int, re.findall(r"\d+", numbers.group())))


def read(path: Path) -> tuple[Difference, ...]:
    """The entries of a list, those that name a case first."""
    entries = _read(path.read_text("utf-8"))
    return tuple(sorted(entries, key=lambda difference: not difference.cases))


DIFFERENCES = read(LIST)


def difference(case: str, number: int, step: Step, local: str) -> Difference | None:
    """The intended difference that is listed for that request, if there is one."""
    return next((one for one in DIFFERENCES if one.meets(case, number, step, local)), None)
