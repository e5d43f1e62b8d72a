"""Imports access logs in the combined format, so that a site can start with yesterday's traffic.

    192.0.2.7 - - [06/May/2020:11:05:12 +0300] "GET /article/132141398 HTTP/1.1" 200 53 "-" "..."

All files of an import are one replay, in the order of their first lines, so windows close by the
times in the logs. Lines that are not visits are counted and reported.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import IO, NamedTuple, cast

import msgspec

from page_hit_counter.pagehits_settings import PageHitSettings, UrlRule
from page_hit_counter.processing.asset_catalogue import Asset, asset_of
from page_hit_counter.processing.page_visits import PageVisit, ReceivedEvents
from page_hit_counter.processing.processor import REFUSED, Processor
from partita.errors import PartitaError

BATCH_VISITS = 500
GZIP = b"\x1f\x8b"
PIECE_BYTES = 1 << 20
LINE = re.compile(
    r'(?P<host>\S+) \S+ (?P<user>.+?) \[(?P<time>[^\]]{1,40})\] "(?P<method>[A-Z]+) (?P<target>\S+)'
    r'[^"]*" (?P<status>\d{3}) \S+(?: "(?P<referrer>(?:[^"\\]|\\.)*)"'
    r' "(?P<agent>(?:[^"\\]|\\.)*)")?'
)
TIME = re.compile(r"(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class ImportCounts(msgspec.Struct):
    """Counts what became of the lines."""

    lines: int = 0
    visits: int = 0
    no_visits: int = 0
    """Requests with a method other than GET, or without success."""
    no_assets: int = 0
    bad: int = 0
    first_bad: str = ""
    refused: int = 0
    """Visits that the processor refused."""
    first_refusal: str = ""

    def __str__(self) -> str:
        text = (
            f"{self.lines} lines: {self.visits} visits, {self.no_visits} other requests, "
            f"{self.no_assets} URLs without an asset, {self.bad} unreadable"
        )
        text = f"{text} (the first: {self.first_bad})." if self.bad else f"{text}."
        if self.refused:
            text += f" {self.refused} of the visits were refused (the first: {self.first_refusal})."
        return text


class LogLine(NamedTuple):
    visit: PageVisit
    asset: Asset | None
    """The entry for the catalogue, which is added if the catalogue does not have the asset yet."""


class ImportRules:
    """The rules under `[[urls]]`; the first that matches counts."""

    def __init__(self, rules: Sequence[UrlRule]) -> None:
        self._rules = [(re.compile(rule.pattern), rule) for rule in rules]

    def read(self, target: str) -> LogLine | None:
        for pattern, rule in self._rules:
            match = pattern.search(target)
            if match is not None:
                return _line(match.groupdict(), rule)
        return None


async def import_files(
    paths: Sequence[Path],
    settings: PageHitSettings,
    processor: Processor,
    say: Callable[[str], None],
) -> ImportCounts:
    if not settings.urls:
        raise PartitaError(
            "There are no rules under [[urls]] in pagehits.toml, so no URL names an asset: add at "
            "least one."
        )
    for path in paths:
        _check(path)
    counts = ImportCounts()
    rules = ImportRules(settings.urls)
    ordered = sorted(paths, key=_first_time)
    # Named after the content, so that importing the same files again is a repeated replay.
    replay = f"import-{_digest(ordered)}"
    number = 0
    waiting: list[LogLine] = []
    for path in ordered:
        for line in _visits(path, rules, counts):
            waiting.append(line)
            if len(waiting) == BATCH_VISITS:
                received = ReceivedEvents(_visits_of(waiting), replay, number)
                await _send(processor, received, waiting, counts)
                number, waiting = number + 1, []
    last = ReceivedEvents(_visits_of(waiting), replay, number, is_last=True)
    await _send(processor, last, waiting, counts)
    say(str(counts))
    return counts


async def _send(
    processor: Processor, received: ReceivedEvents, lines: list[LogLine], counts: ImportCounts
) -> None:
    assets = {line.visit.asset_id: line.asset for line in lines if line.asset is not None}
    await processor.add_assets(assets)
    for answer in await processor.process(received, None):
        if answer.status == REFUSED:
            counts.refused += 1
            counts.first_refusal = counts.first_refusal or answer.reason


def _visits_of(lines: list[LogLine]) -> list[PageVisit | str]:
    return [line.visit for line in lines]


def _visits(path: Path, rules: ImportRules, counts: ImportCounts) -> Iterator[LogLine]:
    with _open(path) as file:
        for number, raw in enumerate(file, 1):
            counts.lines += 1
            text = raw.decode("utf-8", "replace").strip()
            try:
                line = _read(text, rules, counts)
            except ValueError:
                counts.bad += 1
                counts.first_bad = counts.first_bad or f"{path.name}:{number}"
                continue
            if line is not None:
                counts.visits += 1
                yield line


def _read(text: str, rules: ImportRules, counts: ImportCounts) -> LogLine | None:
    """Returns None when a line is not the visit of an asset. Raises `ValueError` when it is not a
    line of a log."""
    match = LINE.fullmatch(text)
    if match is None:
        raise ValueError
    time = read_time(match["time"])
    if match["method"] != "GET" or not (match["status"][0] == "2" or match["status"] == "304"):
        counts.no_visits += 1
        return None
    line = rules.read(match["target"])
    if line is None:
        counts.no_assets += 1
        return None
    visit = line.visit
    visit.time = time
    visit.url = match["target"][:2048]
    visit.agent = (match["agent"] or "")[:512]
    visit.source = match["host"][:64]
    # A log does not name visitors; address and browser together are the best substitute.
    visitor = f"{match['host']} {match['agent']}"
    visit.visitor = blake2b(visitor.encode(), digest_size=12).hexdigest()
    return line


@lru_cache(maxsize=16)
def read_time(text: str) -> float:
    """Returns a time in seconds since the epoch. Cached, because neighbouring lines often have the
    same second."""
    match = TIME.fullmatch(text)
    if match is None or match[2] not in MONTHS:
        raise ValueError(text)
    offset = timedelta(hours=int(match[8]), minutes=int(match[9]))
    zone = timezone(-offset if match[7] == "-" else offset)
    day, year, hour, minute, second = (int(match[part]) for part in (1, 3, 4, 5, 6))
    month = MONTHS.index(match[2]) + 1
    return datetime(year, month, day, hour, minute, second, tzinfo=zone).timestamp()


def _line(groups: dict[str, str | None], rule: UrlRule) -> LogLine | None:
    """Returns None when the groups did not match an asset."""
    try:
        visit = msgspec.convert(
            {
                "assetId": int(groups["assetId"] or ""),
                "sectionId": int(groups.get("sectionId") or rule.section_id),
                "paidType": groups.get("paidType") or rule.paid_type,
            },
            PageVisit,
        )
    except ValueError:
        return None
    brand = groups.get("brand") or rule.brand
    resource_type = groups.get("resourceType") or rule.resource_type
    return LogLine(visit, asset_of(brand, resource_type))


def _first_time(path: Path) -> float:
    with _open(path) as file:
        for raw in file:
            match = TIME.search(raw.decode("utf-8", "replace"))
            if match is not None:
                return read_time(match[0])
    return 0.0


def _check(path: Path) -> None:
    """Reads a file to its end before anything is counted. If a damaged file were counted up to its
    middle, importing the repaired file would count that half again."""
    try:
        with _open(path) as file:
            while file.read(PIECE_BYTES):
                pass
    except (OSError, EOFError, zlib.error) as error:
        raise PartitaError(
            f"{path} cannot be read to its end, so nothing is imported: {error}."
        ) from error


def _digest(paths: Sequence[Path]) -> str:
    digest = blake2b(digest_size=12)
    for path in paths:
        with path.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                digest.update(piece)
    return digest.hexdigest()


def _open(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        is_gzip = file.read(2) == GZIP
    return cast(IO[bytes], gzip.open(path, "rb")) if is_gzip else path.open("rb")
