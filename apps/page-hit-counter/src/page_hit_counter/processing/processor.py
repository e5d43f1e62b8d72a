"""The Event Processor: `POST /events` takes batches of page visits and puts them on the stream.

Each event is validated, enriched with brand and resource type from the catalogue, and judged by the
spam filter. The answer has a status for each event: accepted, uncatalogued, quarantined or refused,
with the reason. A sender that may repeat a batch gives it an `Idempotency-Key`. The batch is then
counted once, and another batch with the same key is refused.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from page_hit_counter.monitoring.service_figures import ServiceFigures
from page_hit_counter.pagehits_settings import PageHitSettings
from page_hit_counter.processing.asset_catalogue import Asset, AssetCatalogue
from page_hit_counter.processing.idempotency import IdempotencyKeys
from page_hit_counter.processing.page_visits import (
    RECORD_BYTES_MAX,
    PageVisit,
    ReceivedEvents,
    VisitRecord,
    decode,
    encode,
    settle_time,
)
from page_hit_counter.processing.producer import Producer
from page_hit_counter.processing.streamed_visits import read_since
from page_hit_counter.processing.visit_signatures import VisitSignatures
from page_hit_counter.service.authorization import NOBODY, AccessControl
from page_hit_counter.spam.quarantine import Quarantine
from page_hit_counter.spam.spam_filter import Judgement, SpamFilter
from partita.client import Client, ClientError
from partita.errors import PartitaError
from partita.foundation.clock import Clock, system_clock
from partita.server.http.web.web_service import WebRequest, WebResponse, WebService, problem

EVENTS_MAX = 1_000
IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,128}")
CORS = {
    "access-control-allow-origin": "*",
    "access-control-allow-headers": "content-type, idempotency-key",
    "access-control-allow-methods": "POST",
}
ACCEPTED, UNCATALOGUED, QUARANTINED, REFUSED = (
    "accepted",
    "uncatalogued",
    "quarantined",
    "refused",
)
SETTLE_SECONDS = 1.0
REFRESH_SECONDS = 10.0
SAVE_SECONDS = 60.0


class VisitsAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The status of one event."""

    status: str
    reason: str = ""


_ACCEPTED, _UNCATALOGUED = VisitsAnswer(ACCEPTED), VisitsAnswer(UNCATALOGUED)


class VisitTooLong(PartitaError):
    pass


class Processor:
    def __init__(
        self,
        client: Client,
        settings: PageHitSettings,
        access: AccessControl = NOBODY,
        clock: Clock = system_clock,
        figures: ServiceFigures | None = None,
    ) -> None:
        """`access` decides who may send replays."""
        self._client = client
        self._settings = settings
        self._access = access
        self._clock = clock
        self._figures = figures
        self._catalogue = AssetCatalogue(
            client, settings.assets_table, settings.catalogue_entries_max, clock
        )
        self._producer = Producer(client, settings.stream)
        """Writes to the counter's stream. Visits may go through the delivery stream instead."""
        self._visits = self._producer
        if settings.delivery.is_on:
            self._visits = Producer(client, settings.delivery.stream)
        self._keys = IdempotencyKeys(client, settings.state_table, clock)
        self._brands = {brand.name for brand in settings.brands}
        self._hosts = {host: brand.name for brand in settings.brands for host in brand.hosts}
        self._signatures = VisitSignatures(settings.signatures, settings.future_seconds)
        self._withheld = 0
        """How many visits were withheld since the figures were last updated."""
        self.spam_filter = SpamFilter(settings.spam)
        self.quarantine = Quarantine.of(client, settings.spam, settings.stream, clock)

    def add_routes(self, web: WebService) -> None:
        web.add("POST", "/events", self.post_events)
        web.add("OPTIONS", "/events", _preflight)

    async def start(self) -> None:
        await self.quarantine.create()
        await self.quarantine.restore(self.spam_filter)
        if self._signatures.settings.mode != "off":
            stream = (
                self._settings.delivery.stream
                if self._settings.delivery.is_on
                else (self._settings.stream)
            )
            since = self._clock() - self._signatures.settings.window_seconds
            async for packed in read_since(self._client, stream, since):
                for visit in packed.visits:
                    if visit.visit_id:
                        self._signatures.remember(visit.visit_id, packed.id)

    async def run(self, stop: asyncio.Event) -> None:
        """Does the periodic work of the spam filter."""
        refreshed = saved = self._clock()
        while not stop.is_set():
            await asyncio.sleep(SETTLE_SECONDS)
            now = self._clock()
            await self._act_on(self.spam_filter.settle(now))
            if now - refreshed > REFRESH_SECONDS:
                refreshed = now
                await self.quarantine.refresh(self.spam_filter)
            if now - saved > SAVE_SECONDS:
                saved = now
                await self.quarantine.save(self.spam_filter)
        await self.quarantine.save(self.spam_filter)

    async def post_events(self, request: WebRequest) -> WebResponse:
        key = request.headers.get("idempotency-key")
        if key is not None and not IDEMPOTENCY_KEY.fullmatch(key):
            return _refusal(400, "An Idempotency-Key has 1 to 128 visible characters.")
        try:
            received = decode(request.body)
        except msgspec.DecodeError as error:
            return _refusal(400, f"The body is not a JSON list of events: {error}.")
        except RecursionError:
            return _refusal(400, "The body is not a list of events: it is nested too deeply.")
        if len(received.outcomes) > EVENTS_MAX:
            return _refusal(413, f"A batch may have at most {EVENTS_MAX} events.")
        if (received.replay is None) != (received.number is None):
            return _refusal(400, "Each batch of a replay needs its name and a number.")
        if received.replay is not None:
            refusal = self._access.refusal(request)
            if refusal is not None:
                return refusal
        if request.headers.get("content-type", "").startswith("text/plain"):
            _fill_in(received, request.headers)
        try:
            if key is not None and not await self._keys.claim(key, request.body):
                return _refusal(
                    409,
                    f"The Idempotency-Key {key} was used with another body: give each batch a "
                    "key of its own.",
                )
            # The key is claimed first: a second batch with it must be refused even while this one
            # is on its way.
            answers = await self.process(received, key)
        except VisitTooLong as error:
            return _refusal(413, str(error))
        except ClientError as error:
            return _refusal(503, f"The batch may not have been stored, send it again: {error}")
        return WebResponse(200, _encode_answers(answers), headers=CORS)

    async def process(self, received: ReceivedEvents, key: str | None) -> list[VisitsAnswer]:
        """Puts the visits of one batch on the stream. Returns the status of each event, in
        order."""
        visits = self._settle_times(received.outcomes)
        await self._look_up(visits)
        visits = self._enrich(received.outcomes, visits)
        reasons: dict[int, str] = {}
        passed = await self._pass(visits, self._check_signatures(visits, key, received), reasons)
        passed = await self._pass(passed, self.spam_filter.judge(passed), reasons)
        await self._put(received, key, passed)
        self._note(received, visits)
        return _answers(received.outcomes, reasons)

    def _check_signatures(
        self, visits: list[PageVisit], key: str | None, received: ReceivedEvents
    ) -> Judgement:
        """Judges visits by their signatures. Replays are exempt: history is not signed, and only
        senders with the token may replay it."""
        mode = self._signatures.settings.mode
        if mode == "off" or received.replay is not None:
            return Judgement()
        problems = self._signatures.reasons(visits, key, self._clock())
        # Visits without a resource type are not judged, because no list shows them.
        reasons = [
            why if v.resource_type else None for v, why in zip(visits, problems, strict=True)
        ]
        judged = self.spam_filter.withhold(visits, reasons, is_filtering=mode == "require")
        for visit in visits:
            visit.signature = ""
        return judged

    async def _pass(
        self, visits: list[PageVisit], judged: Judgement, reasons: dict[int, str]
    ) -> list[PageVisit]:
        """Returns the visits that are not withheld. Notes the reasons of the others in `reasons`,
        by `id()` of the visit."""
        await self._act_on(judged)
        self._withheld += sum(withheld.hits for withheld in judged.withheld)
        if judged.verdicts is None:
            return visits
        paired = list(zip(visits, judged.verdicts, strict=True))
        reasons.update((id(visit), why) for visit, why in paired if why)
        return [visit for visit, why in paired if why is None]

    def _note(self, received: ReceivedEvents, visits: list[PageVisit]) -> None:
        withheld, self._withheld = self._withheld, 0
        if self._figures is not None:
            self._figures.add("visits", len(visits))
            self._figures.add("refused", len(received.outcomes) - len(visits))
            self._figures.add("withheld", withheld)

    async def add_assets(self, assets: dict[int, Asset]) -> None:
        """Adds the assets that the catalogue does not have."""
        await self._catalogue.look_up(assets)
        known = self._catalogue.known
        missing = {number: asset for number, asset in assets.items() if known(number) is None}
        if missing:
            await self._catalogue.put(missing)

    def _settle_times(self, outcomes: list[PageVisit | str]) -> list[PageVisit]:
        now, future = self._clock(), self._settings.future_seconds
        visits = []
        for place, outcome in enumerate(outcomes):
            if isinstance(outcome, PageVisit):
                reason = settle_time(outcome, now, future)
                if reason is None:
                    visits.append(outcome)
                else:
                    outcomes[place] = reason
        return visits

    async def _look_up(self, visits: list[PageVisit]) -> None:
        known = self._catalogue.known
        unknown = [visit.asset_id for visit in visits if known(visit.asset_id) is None]
        if unknown:
            await self._catalogue.look_up(unknown)

    def _enrich(self, outcomes: list[PageVisit | str], visits: list[PageVisit]) -> list[PageVisit]:
        """Sets brand and resource type of visits. Returns the visits without those of brands that
        the settings do not name."""
        known, brands = self._catalogue.known, self._brands
        has_strangers = False
        for visit in visits:
            asset = known(visit.asset_id)
            if asset is None:
                visit.resource_type = None
                visit.brand = self._hosts.get(_host(visit.url), "")
            else:
                visit.brand, visit.resource_type = asset
                has_strangers |= bool(brands) and asset.brand not in brands
        if not has_strangers:
            return visits
        for place, outcome in enumerate(outcomes):
            if isinstance(outcome, PageVisit) and outcome.brand and outcome.brand not in brands:
                outcomes[place] = f"brand {outcome.brand} is not in pagehits.toml"
        return [outcome for outcome in outcomes if isinstance(outcome, PageVisit)]

    async def _act_on(self, judged: Judgement) -> None:
        if judged.withheld:
            await self.quarantine.keep(judged.withheld)
        for adjustment in judged.adjustments:
            brand = adjustment.rows[0].brand if adjustment.rows else adjustment.id
            await self._producer.put(brand, adjustment.encode())

    async def _put(
        self, received: ReceivedEvents, key: str | None, visits: list[PageVisit]
    ) -> None:
        if received.replay is not None and received.number is not None:
            name = f"{received.replay}/{received.number}"
            # All batches of a replay have one partition key, so that they stay in order.
            partition_key, producer = received.replay, self._producer
            packed = VisitRecord(name, visits, received.replay, received.number, received.is_last)
        elif not visits:
            return
        elif key is not None:
            partition_key, producer = key, self._visits
            packed = VisitRecord(key, visits)
        else:
            await self._visits.put_visits(visits)
            return
        data = encode(packed)
        if len(data) > RECORD_BYTES_MAX:
            raise VisitTooLong(
                "The batch is too large for one record of the stream: send fewer events."
            )
        await producer.put(partition_key, data)


def _host(url: str) -> str:
    """Returns the host of a URL; empty when the text that a visitor sent is not a URL."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _fill_in(received: ReceivedEvents, headers: Mapping[str, str]) -> None:
    """Fills in agent and address from the headers, for beacons that browsers send."""
    agent = headers.get("user-agent", "")[:512]
    source = headers.get("x-forwarded-for", "").partition(",")[0].strip()[:64]
    for visit in received.outcomes:
        if isinstance(visit, PageVisit):
            visit.agent = visit.agent or agent
            visit.source = visit.source or source


def _answers(outcomes: list[PageVisit | str], reasons: dict[int, str]) -> list[VisitsAnswer]:
    answers = []
    for outcome in outcomes:
        if isinstance(outcome, str):
            answers.append(VisitsAnswer(REFUSED, outcome))
        elif id(outcome) in reasons:
            answers.append(VisitsAnswer(QUARANTINED, reasons[id(outcome)]))
        else:
            answers.append(_ACCEPTED if outcome.resource_type else _UNCATALOGUED)
    return answers


def _encode_answers(answers: list[VisitsAnswer]) -> bytes:
    counts = Counter(answer.status for answer in answers)
    return msgspec.json.encode({**counts, "events": answers})


def _refusal(status: int, detail: str) -> WebResponse:
    return problem(status, detail, headers=CORS)


async def _preflight(request: WebRequest) -> WebResponse:
    return WebResponse(204, headers=CORS)
