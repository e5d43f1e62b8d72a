"""The settings of the service, read from `pagehits.toml`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from page_hit_counter.delivery.delivery_settings import DeliverySettings
from page_hit_counter.processing.visit_signatures import SignatureSettings
from page_hit_counter.spam.spam_settings import SpamSettings
from partita.errors import PartitaError
from partita.foundation.server_settings import read
from partita_services.alarms import CHECK_SECONDS, Alarm
from partita_services.alarms import check as check_alarms

DAY_SECONDS = 86_400
MEASURES = {"lag_seconds", "late_windows", "failures_per_minute", "spam_share", "late_share"}
"""The readings that an alarm can watch."""
NAME = r"^[A-Za-z0-9_.-]+$"
# A brand must not contain "#", which separates the parts of hash keys.
BRAND = r"^[A-Za-z0-9_.-]{1,32}$"


class Period(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kind of list ("day"), and the tumbling windows that it sums up (24 of one hour)."""

    name: Annotated[str, Meta(pattern=NAME)]
    code: Annotated[str, Meta(pattern=r"^[A-Z]$")]
    """The period in hash keys."""
    seconds: Annotated[int, Meta(ge=1, le=7 * DAY_SECONDS)]
    """The length of one window."""
    count: Annotated[int, Meta(ge=1, le=100)]
    """How many windows a list sums up."""
    max_age_seconds: Annotated[int, Meta(ge=0)]
    """How long caches may keep a list (Cache-Control)."""

    def start(self, time: float) -> int:
        """Returns the start of the window that contains a time."""
        return int(time // self.seconds) * self.seconds

    def stamp(self, start: int) -> str:
        """Returns the start of a window as hash keys have it: 2020-05-06T11:05, with seconds when
        windows do not start on a minute."""
        text = datetime.fromtimestamp(start, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return text.removesuffix(":00") if self.seconds % 60 == 0 else text

    def hash_key(self, brand: str, start: int) -> str:
        return f"{brand}#{self.code}#{self.stamp(start)}"


JUST_NOW = Period(name="justnow", code="F", seconds=300, count=1, max_age_seconds=30)
DAY = Period(name="day", code="H", seconds=3600, count=24, max_age_seconds=120)
WEEK = Period(name="week", code="D", seconds=DAY_SECONDS, count=7, max_age_seconds=300)


class Brand(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(pattern=BRAND)]
    hosts: tuple[str, ...] = ()
    """The host names in its URLs. They give the brand of visits to assets that are not in the
    catalogue yet."""


class UrlRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Says how a URL in an access log names an asset: by a pattern with the group `assetId`.

    The groups `brand`, `sectionId`, `paidType` and `resourceType` are optional. A value that
    neither a group nor the catalogue gives is taken from the rule.
    """

    pattern: str
    brand: str | None = None
    section_id: int = 0
    paid_type: str = "free"
    resource_type: str | None = None


class PageHitSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    brands: tuple[Brand, ...] = ()
    """Without any, visits of every brand in the catalogue count."""
    periods: tuple[Period, ...] = (JUST_NOW, DAY, WEEK)
    lateness_seconds: Annotated[float, Meta(ge=0, le=DAY_SECONDS)] = 3.0
    """How long after the end of a window its visits may still arrive."""
    future_seconds: Annotated[float, Meta(ge=0)] = 60.0
    """How far ahead a visitor's clock may be."""
    stream: Annotated[str, Meta(pattern=NAME)] = "pagehits"
    shards: Annotated[int, Meta(ge=1, le=100)] = 2
    table: Annotated[str, Meta(pattern=NAME)] = "pagehits"
    assets_table: Annotated[str, Meta(pattern=NAME)] = "pagehits-assets"
    state_table: Annotated[str, Meta(pattern=NAME)] = "pagehits-state"
    windows_table: Annotated[str, Meta(pattern=NAME)] = "pagehits-windows"
    malformed_table: Annotated[str, Meta(pattern=NAME)] = "pagehits-malformed"
    kept_assets: Annotated[int, Meta(ge=1)] = 500
    """How many assets of a window are stored; more when several share the lowest count."""
    kept_rows_max: Annotated[int, Meta(ge=1, le=20_000)] = 10_000
    """The most rows that are stored of a window, however many assets share the lowest count."""
    expires_after: Literal["list", "window"] = "list"
    """When a window starts to expire: after the last list that shows it, or at its own end."""
    expiration_grace_seconds: Annotated[int, Meta(ge=0)] = 600
    write_units: Annotated[float, Meta(gt=0)] = 50.0
    """The write units per second that storing may use."""
    spread: Annotated[float, Meta(gt=0, le=1)] = 0.8
    """The share of the shortest window over which rows are stored."""
    compression: bool = False
    """Stores a window as one compressed item instead of one item for each row."""
    catalogue_entries_max: Annotated[int, Meta(ge=1)] = 200_000
    """How many assets the processor keeps in memory."""
    cached_windows_max: Annotated[int, Meta(ge=1)] = 1_000
    cached_lists_max: Annotated[int, Meta(ge=1)] = 10_000
    urls: tuple[UrlRule, ...] = ()
    spam: SpamSettings = SpamSettings()
    consumer: Literal["process", "function"] = "process"
    """Where the consumer runs: in a process of the service, or as a function of the database's
    server."""
    consumer_function: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")] = "page-hit-consumer"
    delivery: DeliverySettings = DeliverySettings()
    signatures: SignatureSettings = SignatureSettings()
    alarms: tuple[Alarm, ...] = ()
    alarm_check_seconds: Annotated[float, Meta(gt=0, le=3_600)] = CHECK_SECONDS
    config: str = ""
    """The file that the settings were read from. It is filled in for the functions, which read the
    same file."""

    def period(self, name: str) -> Period | None:
        return next((period for period in self.periods if period.name == name), None)

    def expiration_time(self, period: Period, start: int) -> int:
        """Returns when a window may be deleted. A list shows it for `count` windows, and until the
        next window after those has closed."""
        shown = period.count if self.expires_after == "list" else 0
        return start + (1 + shown) * period.seconds + self.expiration_grace_seconds


def load(path: Path | None) -> PageHitSettings:
    if path is None:
        return PageHitSettings()
    settings = read(path, PageHitSettings)
    _check_periods(path, settings.periods)
    _check_interval(path, settings)
    _check_urls(path, settings.urls)
    _check_delivery(path, settings)
    check_alarms(settings.alarms, path, MEASURES, has_functions=True)
    return _placed(path, settings)


def _placed(path: Path, settings: PageHitSettings) -> PageHitSettings:
    """Returns the settings with absolute paths, which mean the same in every process."""
    folder, replace = path.resolve().parent, msgspec.structs.replace
    delivery, signatures = settings.delivery, settings.signatures
    if delivery.is_on:
        place = str(folder / delivery.folder)
        delivery = replace(delivery, folder=place)
    if signatures.mode != "off":
        signatures = replace(signatures, keys=str(folder / signatures.keys))
    config = str(path.resolve())
    return replace(settings, delivery=delivery, signatures=signatures, config=config)


def _check_periods(path: Path, periods: tuple[Period, ...]) -> None:
    if not periods:
        raise PartitaError(f"{path} has no periods: leave them out for the defaults.")
    for shorter, longer in pairwise(periods):
        if longer.seconds % shorter.seconds or longer.seconds == shorter.seconds:
            raise PartitaError(
                f"The windows of {longer.name} in {path} have {longer.seconds} seconds, which is "
                f"not a multiple of the {shorter.seconds} seconds of {shorter.name}: list periods "
                "from the shortest window to the longest, each a multiple of the one before."
            )
    for names in ([p.name for p in periods], [p.code for p in periods]):
        if len(set(names)) < len(names):
            raise PartitaError(f"Two periods in {path} have the same name or code.")


def _check_interval(path: Path, settings: PageHitSettings) -> None:
    """Checks that every interval lies in one window of each period, so that hits that are withheld
    from it can be taken from one window."""
    interval = settings.spam.interval_seconds
    is_withholding = settings.spam.mode == "filter" or settings.signatures.mode == "require"
    for period in settings.periods:
        if is_withholding and period.seconds % interval:
            raise PartitaError(
                f"The windows of {period.name} in {path} have {period.seconds} seconds, which is "
                f"not a multiple of interval_seconds = {interval} under [spam]."
            )


def _check_delivery(path: Path, settings: PageHitSettings) -> None:
    """Checks that windows wait for visits as long as their delivery may take."""
    needed = settings.delivery.delay_seconds_max
    if settings.delivery.is_on and settings.lateness_seconds < needed:
        raise PartitaError(
            f"Visits may take {needed:g} seconds by the route {settings.delivery.route} under "
            f"[delivery] in {path}, and would be late: set lateness_seconds to at least {needed:g}."
        )


def _check_urls(path: Path, rules: tuple[UrlRule, ...]) -> None:
    for rule in rules:
        try:
            groups = re.compile(rule.pattern).groupindex
        except re.error as error:
            raise PartitaError(
                f"The pattern {rule.pattern!r} under [[urls]] in {path} is not a regular "
                f"expression: {error}."
            ) from error
        if "assetId" not in groups:
            raise PartitaError(
                f"The pattern {rule.pattern!r} under [[urls]] in {path} has no group assetId."
            )
