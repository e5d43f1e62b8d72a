"""The counter's function: takes visits that were delivered, and puts them on the counter's stream.

Records keep the ids that the processor gave them, so a record that is delivered twice counts once.
A line that is not a record is set aside in the table of malformed records.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from page_hit_counter.delivery import delivered_files
from page_hit_counter.delivery.arrival_events import Event, arrived
from page_hit_counter.pagehits_settings import PageHitSettings
from page_hit_counter.processing.producer import Producer
from page_hit_counter.storing.window_consumer import OK, set_aside
from partita.client import Client
from partita.errors import PartitaError
from partita.foundation.clock import Clock, system_clock

HOUR_SECONDS = 3_600
REMEMBERED_SECONDS = 2 * 86_400


class IdentifiedRecord(msgspec.Struct):
    """The id of a record, by which the counter recognises it, and its visits."""

    id: str
    visits: list[msgspec.Raw]


_identify = msgspec.json.Decoder(IdentifiedRecord).decode


class Arrivals:
    def __init__(
        self, client: Client, settings: PageHitSettings, clock: Clock = system_clock
    ) -> None:
        self._client = client
        self._settings = settings
        self._folder = Path(settings.delivery.folder)
        self._producer = Producer(client, settings.stream)
        self._clock = clock

    async def take(self, event: Event) -> dict[str, int]:
        """Takes what an event says has arrived. Returns how many records and files there were.
        Raises an error when the event has to be sent again."""
        try:
            arrival = arrived(event)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise PartitaError(
                f"The event is not one of a delivery stream, a bucket, a topic or a schedule: "
                f"{error!r}."
            ) from error
        if arrival is None:
            return await self._look()
        records = await self._put(arrival.records)
        for key in arrival.keys:
            records += await self._put(delivered_files.read(self._folder, key))
        return {"records": records, "files": len(arrival.keys)}

    async def _look(self) -> dict[str, int]:
        """Looks for new files (option D). The files that were read are remembered by hour."""
        now = self._clock()
        records = files = 0
        for hour in delivered_files.hours(await self._looked_at() - HOUR_SECONDS, now):
            keys = delivered_files.keys(self._folder, self._settings.delivery.prefix + hour)
            read_before = await self._read_keys(hour) if keys else set()
            for key in keys:
                if key not in read_before:
                    records += await self._put(delivered_files.read(self._folder, key))
                    await self._remember(hour, key)
                    files += 1
        await self._note_look(now)
        return {"records": records, "files": files}

    async def _put(self, records: list[bytes]) -> int:
        valid: list[tuple[str, bytes]] = []
        for record in records:
            try:
                valid.append((_identify(record).id, record))
            except msgspec.DecodeError as error:
                await self._set_aside(record, str(error))
        await self._producer.put_all(valid)
        return len(valid)

    async def _set_aside(self, record: bytes, reason: str) -> None:
        name = blake2b(record, digest_size=16).hexdigest()
        malformed = {"recordId": name, "data": record.decode("utf-8", "replace")}
        result = await set_aside(self._client, self._settings, malformed, reason, self._clock())
        if result != OK:
            raise PartitaError(
                f"A line that is not a record could not be written to "
                f"{self._settings.malformed_table}."
            )

    # The files that were read

    async def _looked_at(self) -> float:
        answer = await self._call("GetItem", Key=_key("delivered"), ConsistentRead=True)
        item = answer.get("Item")
        return float(item["lookedAt"]["N"]) if item else self._clock() - REMEMBERED_SECONDS / 2

    async def _note_look(self, now: float) -> None:
        await self._call("PutItem", Item={**_key("delivered"), "lookedAt": {"N": f"{now:.3f}"}})

    async def _read_keys(self, hour: str) -> set[str]:
        answer = await self._call("GetItem", Key=_key(f"delivered#{hour}"), ConsistentRead=True)
        return set(answer["Item"]["keys"]["SS"]) if "Item" in answer else set()

    async def _remember(self, hour: str, key: str) -> None:
        await self._call(
            "UpdateItem",
            Key=_key(f"delivered#{hour}"),
            UpdateExpression="ADD #keys :key SET expirationTime = :until",
            ExpressionAttributeNames={"#keys": "keys"},
            ExpressionAttributeValues={
                ":key": {"SS": [key]},
                ":until": {"N": str(int(self._clock()) + REMEMBERED_SECONDS)},
            },
        )

    async def _call(self, operation: str, **request: Any) -> dict[str, Any]:
        table = self._settings.state_table
        return await self._client.call("dynamodb", operation, {"TableName": table, **request})


def _key(name: str) -> dict[str, dict[str, str]]:
    return {"name": {"S": name}, "number": {"N": "0"}}
