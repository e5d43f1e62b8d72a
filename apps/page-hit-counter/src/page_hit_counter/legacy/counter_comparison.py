"""`partita pagehits compare`: runs the old counter and the new one on the same visits.

Both count all visits. Then their lists are compared, and how much each of them wrote, stores and
would cost. The visits are moved in time so that they end just before now, because lists are about
the present, and windows that no list shows any more are not stored.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from heapq import nlargest
from itertools import accumulate
from pathlib import Path
from statistics import median
from time import perf_counter
from uuid import uuid4

import msgspec
from msgspec import Struct

from page_hit_counter.aws.aws_costs import CloudPrices, aurora_month, dynamodb_month
from page_hit_counter.counting.counter import VisitCounter
from page_hit_counter.counting.tumbling_windows import recount
from page_hit_counter.legacy.relational_counter import OLD_PERIODS, PageHit, RelationalCounter
from page_hit_counter.lists.most_popular import ListFilter, MostPopularLists
from page_hit_counter.pagehits_settings import DAY, JUST_NOW, WEEK, PageHitSettings, Period
from page_hit_counter.processing.asset_catalogue import Asset
from page_hit_counter.processing.page_visits import PageVisit, ReceivedEvents
from page_hit_counter.processing.processor import Processor
from page_hit_counter.service import stream_and_tables
from page_hit_counter.service.service_supervisor import SupervisedProcess
from page_hit_counter.spam.spam_settings import SpamSettings
from page_hit_counter.storing.closed_windows import ClosedWindows, WindowKey
from page_hit_counter.storing.page_hits_table import item_of
from page_hit_counter.storing.window_rows import WindowRow
from partita.client import Client
from partita.database.item.item_sizes import item_size
from partita.errors import PartitaError
from partita.foundation.clock import Clock, system_clock

PERIODS = (JUST_NOW, DAY, WEEK)
BATCH = 100
SENDERS = 16
LISTS, LIST_ROUNDS = 12, 5
"""How many lists are read in a round, and how many rounds there are of each kind; kinds take
turns."""
GB = 1_000_000_000
POLL_SECONDS = 0.2
CLOSE_SECONDS_MAX = 120.0
SAMPLE_BRAND = "abc"
SAMPLE_SECONDS = 30 * 3_600
"""More than a day, so that the list for a week has a whole day to show."""
SAMPLE_ASSETS = 2_000

Counts = dict[tuple[str, int, int, str, str], int]
Hits = list[tuple[int, int]]
"""Assets with their hits, most popular first."""


class ComparedCounter(Struct, kw_only=True):
    """The figures of one of the counters."""

    seconds: float
    """The time until all visits were stored safely."""
    visits_second: float
    rows_written: int
    bytes_kept: int
    first_lists_second: float = 0.0
    """Lists of the past day per second that are read from the database by one reader, as the median
    of the rounds."""
    lists_second: float = 0.0
    """Lists of the past day per second as they are served: the old counter queries its database
    every time, the new one caches what it has read."""
    dollars_month: float
    lists: dict[str, Hits] = {}


class ComparisonResult(Struct, kw_only=True):
    visits: int
    old: ComparedCounter
    new: ComparedCounter
    differences: dict[str, int]
    """How many listed assets differ between the two counters, by period. Two empty lists prove
    nothing, and are named in `empty_lists`."""
    empty_lists: list[str]


def sample_visits(count: int, seed: int = 1) -> list[PageVisit]:
    """Makes up thirty hours of visits to a site where few assets have most of the hits."""
    chance = random.Random(seed)
    assets = [
        PageVisit(
            asset_id=100_000_000 + number,
            section_id=1 + chance.randrange(40),
            paid_type=chance.choice(("free", "paid", "metered")),
            brand=SAMPLE_BRAND,
            resource_type=chance.choice(("article", "recipe", "advertorial")),
        )
        for number in range(SAMPLE_ASSETS)
    ]
    weights = list(accumulate(1 / (rank + 3) for rank in range(SAMPLE_ASSETS)))
    chosen = chance.choices(assets, cum_weights=weights, k=count)
    return [
        msgspec.structs.replace(
            visit,
            time=SAMPLE_SECONDS * number / count,
            visitor=f"visitor-{chance.randrange(count)}",
        )
        for number, visit in enumerate(chosen)
    ]


def read_visits(path: Path) -> list[PageVisit]:
    """Reads lines of JSON: events as they are posted, with brand and resourceType."""
    try:
        lines = path.read_bytes().splitlines()
        visits = [msgspec.json.decode(line, type=PageVisit) for line in lines]
    except OSError as error:
        raise PartitaError(f"Cannot read the visits in {path}: {error.strerror}.") from error
    except msgspec.DecodeError as error:
        raise PartitaError(f"The visits in {path} are not valid: {error}.") from error
    if not visits:
        raise PartitaError(f"There are no visits in {path}: nothing can be compared.")
    return visits


async def run(
    visits: Sequence[PageVisit], postgresql: str, prices: CloudPrices
) -> ComparisonResult:
    """Compares both counters on a server of its own, whose data is removed afterwards."""
    old = [RelationalCounter.connect(postgresql) for _ in range(SENDERS)]
    folder = tempfile.TemporaryDirectory(prefix="partita-compare-")
    arguments = ["serve", "--data", folder.name, "--port", "0", "--response-cache", "off"]
    server = SupervisedProcess(arguments, say=lambda text: None)
    try:
        await server.start()
        client = Client(server.url)
        try:
            return await compare(visits, old, client, prices)
        finally:
            await client.close()
    finally:
        await server.stop()
        folder.cleanup()
        for counter in old:
            counter.close()


async def compare(
    visits: Sequence[PageVisit],
    old: Sequence[RelationalCounter],
    client: Client,
    prices: CloudPrices,
    clock: Clock = system_clock,
) -> ComparisonResult:
    """Compares both counters. `old` are connections to an empty database, one for each sender;
    `client` is connected to an empty server."""
    brands = {visit.brand for visit in visits if visit.resource_type}
    if not brands:
        raise PartitaError(
            "None of the visits has a brand and a resourceType: nothing can be compared."
        )
    if len(brands) != 1:
        raise PartitaError(
            f"The old counter serves one brand, but the visits have {len(brands)}: "
            "give visits of one brand."
        )
    lateness = PageHitSettings().lateness_seconds
    end = JUST_NOW.start(clock() - lateness)
    moved = moved_to_end(visits, end)
    span = max(1.0, end - moved[0].time)
    old_side = await asyncio.to_thread(_run_old, old, moved, end, span, prices)
    brand = brands.pop()
    new_side = await _run_new(client, moved, brand, end, span, prices, clock)
    await _measure_lists(old[0], old_side, client, new_side, brand, end)
    differences = {
        name: len(set(old_side.lists[name]) ^ set(new_side.lists[name])) for name in old_side.lists
    }
    return ComparisonResult(
        visits=len(moved),
        old=old_side,
        new=new_side,
        differences=differences,
        empty_lists=[
            name for name in differences if not (old_side.lists[name] or new_side.lists[name])
        ],
    )


def moved_to_end(visits: Sequence[PageVisit], end: int) -> list[PageVisit]:
    """Returns the visits in order of time, moved so that the last is in the five minutes before the
    end."""
    counted = sorted((v for v in visits if v.resource_type), key=lambda visit: visit.time)
    step = JUST_NOW.seconds
    shift = end - step - JUST_NOW.start(counted[-1].time)
    return [msgspec.structs.replace(visit, time=visit.time + shift) for visit in counted]


# The old counter


def _run_old(
    counters: Sequence[RelationalCounter],
    visits: list[PageVisit],
    end: int,
    span: float,
    prices: CloudPrices,
) -> ComparedCounter:
    counter = counters[0]
    counter.create()
    parts = _parts(visits)
    began = perf_counter()
    with ThreadPoolExecutor(SENDERS) as senders:
        rows = sum(senders.map(_count_old, counters, parts))
    seconds = perf_counter() - began
    lists = {
        name: [(p.asset_id, p.hits) for p in counter.most_popular(name, end)]
        for name in OLD_PERIODS
    }
    kept = counter.size().bytes
    return ComparedCounter(
        seconds=seconds,
        visits_second=len(visits) / seconds,
        rows_written=rows,
        bytes_kept=kept,
        dollars_month=aurora_month(prices.aurora, rows / span, kept / GB),
        lists=lists,
    )


def _count_old(counter: RelationalCounter, visits: list[PageVisit]) -> int:
    """Counts the visits of one of several senders. Batches are sorted, so that senders lock rows in
    the same order and do not deadlock."""
    rows = 0
    for first in range(0, len(visits), BATCH):
        hits = sorted(_page_hit(visit) for visit in visits[first : first + BATCH])
        rows += counter.count(hits)
    return rows


def _page_hit(visit: PageVisit) -> PageHit:
    return PageHit(
        visit.asset_id,
        1,
        visit.section_id,
        visit.resource_type or "",
        visit.paid_type,
        visit.time,
    )


# The new counter

NEW_SETTINGS = PageHitSettings(spam=SpamSettings(mode="off"))
"""The spam filter is off, because the old counter has none."""


async def _run_new(
    client: Client,
    visits: list[PageVisit],
    brand: str,
    end: int,
    span: float,
    prices: CloudPrices,
    clock: Clock,
) -> ComparedCounter:
    settings = NEW_SETTINGS
    await stream_and_tables.create(client, settings)
    processor = Processor(client, settings, clock=clock)
    await processor.add_assets({v.asset_id: Asset(brand, v.resource_type or "") for v in visits})
    stop = asyncio.Event()
    counting = asyncio.create_task(VisitCounter(client, settings, clock).run(stop))
    try:
        began = perf_counter()
        await _send_all(processor, visits)
        seconds = perf_counter() - began
        await _wait_until_closed(client, settings, _listed(brand, visits, end))
    finally:
        stop.set()
        await counting
    lists = await _read_lists(client, settings, brand, end)
    rows, kept = _written(settings, visits, end)
    return ComparedCounter(
        seconds=seconds,
        visits_second=len(visits) / seconds,
        rows_written=rows,
        bytes_kept=kept,
        # A write unit writes an item per second. Lists are read once and then cached, so as many
        # read units as write units are enough.
        dollars_month=dynamodb_month(prices.dynamodb, rows / span, rows / span, kept / GB),
        lists=lists,
    )


async def _send_all(processor: Processor, visits: list[PageVisit]) -> None:
    """Sends visits from several concurrent senders, each in order of time."""
    name = f"compare-{uuid4().hex[:12]}"
    parts = enumerate(_parts(visits))
    await asyncio.gather(*(_send(processor, f"{name}-{n}", part) for n, part in parts if part))


def _parts(visits: list[PageVisit]) -> list[list[PageVisit]]:
    """Returns the visits of each sender."""
    return [visits[first::SENDERS] for first in range(SENDERS)]


async def _send(processor: Processor, replay: str, visits: list[PageVisit]) -> None:
    for number, first in enumerate(range(0, len(visits), BATCH)):
        batch: list[PageVisit | str] = list(visits[first : first + BATCH])
        is_last = first + BATCH >= len(visits)
        await processor.process(ReceivedEvents(batch, replay, number, is_last), None)


def _listed(brand: str, visits: list[PageVisit], end: int) -> list[WindowKey]:
    """Returns the windows with visits that the lists show."""
    moments = {period: {period.start(visit.time) for visit in visits} for period in PERIODS}
    keys = [key for period in PERIODS for key in _keys(brand, period, end)]
    return [key for key in keys if key.start in moments[key.period]]


async def _wait_until_closed(
    client: Client, settings: PageHitSettings, keys: list[WindowKey]
) -> None:
    closed_windows = ClosedWindows(client, settings)
    waiting = list(keys)
    try:
        async with asyncio.timeout(CLOSE_SECONDS_MAX):
            while waiting:
                if await closed_windows.get(waiting[0]) is None:
                    await asyncio.sleep(POLL_SECONDS)
                else:
                    waiting.pop(0)
    except TimeoutError as error:
        late = waiting[0]
        raise PartitaError(
            f"The new counter did not close {late.name} {late.start} in time."
        ) from error


async def _read_lists(
    client: Client, settings: PageHitSettings, brand: str, end: int
) -> dict[str, Hits]:
    popular = MostPopularLists(client, settings)
    lists = {}
    for period in PERIODS:
        entries = await popular.most_popular([brand], period, _newest(period, end), ListFilter())
        lists[period.name] = [(entry["assetId"], entry["hits"]) for entry in entries]
    return lists


# Lists


async def _measure_lists(
    counter: RelationalCounter,
    old: ComparedCounter,
    client: Client,
    new: ComparedCounter,
    brand: str,
    end: int,
) -> None:
    """Measures lists in turns, so that other load on the machine affects all kinds alike."""
    await asyncio.to_thread(counter.analyze)
    rounds = [
        (
            await asyncio.to_thread(_old_lists_second, counter, end),
            await _first_lists_second(client, brand, end),
            await _lists_second(client, brand, end),
        )
        for _ in range(LIST_ROUNDS)
    ]
    from_tables, first, served = map(median, zip(*rounds, strict=True))
    old.first_lists_second = old.lists_second = from_tables
    new.first_lists_second, new.lists_second = first, served


def _old_lists_second(counter: RelationalCounter, end: int) -> float:
    began = perf_counter()
    for _ in range(LISTS):
        counter.most_popular(DAY.name, end)
    return LISTS / (perf_counter() - began)


async def _first_lists_second(client: Client, brand: str, end: int) -> float:
    """Measures lists without a cache, as in a process that has just started."""
    newest = _newest(DAY, end)
    began = perf_counter()
    for _ in range(LISTS):
        await MostPopularLists(client, NEW_SETTINGS).most_popular(
            [brand], DAY, newest, ListFilter()
        )
    return LISTS / (perf_counter() - began)


async def _lists_second(client: Client, brand: str, end: int) -> float:
    lists, newest = MostPopularLists(client, NEW_SETTINGS), _newest(DAY, end)
    await lists.most_popular([brand], DAY, newest, ListFilter())
    began = perf_counter()
    for _ in range(LISTS):
        await lists.most_popular([brand], DAY, newest, ListFilter())
    return LISTS / (perf_counter() - began)


def _keys(brand: str, period: Period, end: int) -> list[WindowKey]:
    newest = _newest(period, end)
    return [
        WindowKey(brand, period, newest - number * period.seconds) for number in range(period.count)
    ]


def _newest(period: Period, end: int) -> int:
    """Returns the start of the last window that has ended."""
    return period.start(end) - period.seconds


def _written(settings: PageHitSettings, visits: list[PageVisit], end: int) -> tuple[int, int]:
    """Returns the number and size of the items that closed windows are stored as, including windows
    that have expired and were therefore not stored in this run."""
    periods = {period.code: period for period in PERIODS}
    items, size = 0, 0
    for (code, start), counts in recount(visits, PERIODS).items():
        if start + periods[code].seconds > end:
            continue
        for row, hits in _high_counts(counts, settings.kept_assets).items():
            brand, asset_id, section_id, paid_type, resource_type = row
            key = WindowKey(brand, periods[code], start)
            stored = WindowRow(asset_id, section_id, paid_type, resource_type, hits)
            items += 1
            size += item_size(item_of(settings, key, stored))
    return items, size


def _high_counts(counts: Counts, kept_assets: int) -> Counts:
    """Returns the counts down to that of the last asset that is kept."""
    highest = nlargest(kept_assets, counts.values())
    return {row: hits for row, hits in counts.items() if hits >= highest[-1]}
