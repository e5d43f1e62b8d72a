"""Signed visits: the site's own server signs each visit, so that nobody else can make visits up.

When the server renders a page, it gives the visit an id, and signs the id, the asset and the time:

    <key id>.<time>.<HMAC-SHA256 of key id, visit id, asset id and time, in hex>

The HMAC is over the four values joined by line feeds; the time is in whole seconds. A signature is
valid for some minutes and for one visit. The keys are in a file that is read again when it changes,
so that a new key can be added before the old one ends.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from page_hit_counter.processing.page_visits import PageVisit
from partita.errors import PartitaError
from partita.foundation.server_settings import read

Mode = Literal["off", "observe", "require"]
UNSIGNED, UNKNOWN_KEY, ENDED_KEY = "unsigned", "unknown-key", "ended-key"
FORGED, STALE, REPLAYED = "forged", "stale", "replayed"
KEY_ID = r"^[A-Za-z0-9_-]{1,32}$"
LOOK_SECONDS = 1.0
SECRET_BYTES = 32


class SignatureSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The section `[signatures]` of pagehits.toml."""

    mode: Mode = "off"
    """`observe` writes cases but counts everything; `require` withholds visits that are not
    signed."""
    keys: str = "pagehits-keys.toml"
    """The file of keys, relative to the folder of pagehits.toml."""
    window_seconds: Annotated[int, Meta(ge=10, le=86_400)] = 600
    """How long after it was signed a visit may arrive."""
    visits_max: Annotated[int, Meta(ge=1_000)] = 1_000_000
    """How many visits are remembered in order to recognise replayed signatures."""


class VisitSigningKey(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    id: Annotated[str, Meta(pattern=KEY_ID)]
    secret: Annotated[str, Meta(min_length=16)]
    since: datetime | None = None
    until: datetime | None = None

    def signs_at(self, time: float) -> bool:
        return (self.since is None or self.since.timestamp() <= time) and (
            self.until is None or time < self.until.timestamp()
        )


class SigningKeyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keys: tuple[VisitSigningKey, ...] = ()


def sign(key: VisitSigningKey, visit_id: str, asset_id: int, time: int) -> str:
    return f"{key.id}.{time}.{_code(key, visit_id, asset_id, time)}"


def _code(key: VisitSigningKey, visit_id: str, asset_id: int, time: int) -> str:
    text = f"{key.id}\n{visit_id}\n{asset_id}\n{time}"
    return hmac.new(key.secret.encode(), text.encode(), sha256).hexdigest()


def read_keys(path: Path) -> dict[str, VisitSigningKey]:
    keys = read(path, SigningKeyFile).keys
    for key in keys:
        for moment in (key.since, key.until):
            if moment is not None and moment.tzinfo is None:
                raise PartitaError(f"The key {key.id} in {path} needs times with a time zone.")
    if len({key.id for key in keys}) < len(keys):
        raise PartitaError(f"Two keys in {path} have the same id.")
    return {key.id: key for key in keys}


def current_key(keys: Iterable[VisitSigningKey], now: float) -> VisitSigningKey:
    """Returns the newest key that may sign at this time."""
    signing = [key for key in keys if key.signs_at(now)]
    if not signing:
        raise PartitaError(
            "No key is valid at this time: add one with `partita pagehits keys rotate`."
        )
    beginning = datetime.min.replace(tzinfo=UTC)
    return max(signing, key=lambda key: key.since or beginning)


def write_keys(path: Path, keys: Iterable[VisitSigningKey]) -> None:
    """Writes the file of keys, readable only by its owner. It is replaced in one step, because a
    processor may be reading it."""
    lines = []
    for key in keys:
        lines += [
            "[[keys]]",
            f'id = "{key.id}"',
            f"secret = {msgspec.json.encode(key.secret).decode()}",
        ]
        lines += [
            f"{name} = {moment.isoformat()}"
            for name, moment in (("since", key.since), ("until", key.until))
            if moment is not None
        ]
        lines.append("")
    part = path.with_name(f".{path.name}.part")
    # The mode is set before the secrets are in the file.
    part.touch(mode=0o600)
    part.write_text("\n".join(lines))
    os.replace(part, path)


def rotated(
    keys: Sequence[VisitSigningKey], now: float, days: float, overlap_hours: float
) -> list[VisitSigningKey]:
    """Returns the keys with a new one. Older keys end after the overlap, and keys that have ended
    are dropped."""
    moment = datetime.fromtimestamp(int(now), UTC)
    ends = moment + timedelta(hours=overlap_hours)
    left = [key for key in keys if key.until is None or key.until > moment]
    shortened = [msgspec.structs.replace(key, until=min(key.until or ends, ends)) for key in left]
    new = VisitSigningKey(
        id=f"{moment:%Y%m%d}-{secrets.token_hex(3)}",
        secret=secrets.token_urlsafe(SECRET_BYTES),
        since=moment,
        until=moment + timedelta(days=days),
    )
    return [*shortened, new]


class VisitSignatures:
    def __init__(self, settings: SignatureSettings, future_seconds: float) -> None:
        self.settings = settings
        self._future_seconds = future_seconds
        self._path = Path(settings.keys)
        self._keys: dict[str, VisitSigningKey] = {}
        self._read_at = self._changed_at = 0.0
        self._newer: dict[str, str] = {}
        self._older: dict[str, str] = {}
        self._turned_at = 0.0
        if settings.mode != "off":
            self._keys = read_keys(self._path)

    def reasons(
        self, visits: Sequence[PageVisit], batch: str | None, now: float
    ) -> list[str | None]:
        """Returns what is wrong with each visit, or None. A visit that is sent again in the same
        batch, by its Idempotency-Key, does not count as replayed."""
        self._look_for_keys(now)
        self._forget(now)
        return [self._reason(visit, batch or "", now) for visit in visits]

    def remember(self, visit_id: str, batch: str = "") -> None:
        self._newer[visit_id] = batch

    def _reason(self, visit: PageVisit, batch: str, now: float) -> str | None:
        if not visit.signature or not visit.visit_id:
            return UNSIGNED
        key_id, _, rest = visit.signature.partition(".")
        written, _, code = rest.partition(".")
        if not (written.isascii() and written.isdigit() and len(written) <= 11):
            return FORGED
        time, key = int(written), self._keys.get(key_id)
        if key is None:
            return UNKNOWN_KEY
        good = _code(key, visit.visit_id, visit.asset_id, time)
        # Compared in constant time, so that response times do not reveal the code.
        if not hmac.compare_digest(good.encode(), code.encode()):
            return FORGED
        if not key.signs_at(time):
            return ENDED_KEY
        return self._timely(visit, time, now) or self._once(visit.visit_id, batch)

    def _timely(self, visit: PageVisit, time: int, now: float) -> str | None:
        """Returns STALE when the visit arrives too late, or claims a time far from the signed
        one."""
        window, future = self.settings.window_seconds, self._future_seconds
        is_timely = time - future <= now <= time + window
        is_true = time - future <= visit.time <= time + window
        return None if is_timely and is_true else STALE

    def _once(self, visit_id: str, batch: str) -> str | None:
        earlier_batch = self._newer.get(visit_id, self._older.get(visit_id))
        if earlier_batch is None:
            self.remember(visit_id, batch)
            return None
        return None if batch and earlier_batch == batch else REPLAYED

    def _forget(self, now: float) -> None:
        """Forgets the older half of the visits when it is old or the newer half is full. Visits
        that are forgotten by age are too old to be accepted again."""
        age = now - self._turned_at
        lifetime = self.settings.window_seconds + self._future_seconds
        if age > lifetime or len(self._newer) > self.settings.visits_max // 2:
            self._newer, self._older = {}, self._newer
            self._turned_at = now

    def _look_for_keys(self, now: float) -> None:
        """Reads the file of keys again when it has changed. A file that is missing or not valid
        leaves the keys as they are."""
        if 0 <= now - self._read_at < LOOK_SECONDS:
            return
        self._read_at = now
        try:
            changed_at = self._path.stat().st_mtime
            if changed_at != self._changed_at:
                self._keys = read_keys(self._path)
                self._changed_at = changed_at
        except (OSError, PartitaError):
            return
