"""The quarantine: a table of cases that people read, release or confirm.

    hashKey                rangeKey                        content
    cases#abc              2020-05-06T11-reload-1f…        a case without its evidence
    evidence#abc#<case>    1588763100#<batch>              hits of the case, compressed
    release#abc#<case>     00000, 00001, ...               evidence that one adjustment releases
    decisions#abc          reload#<digest>                 a person's decision about a subject
    brands                 abc                             brands with a learned state:
    learned#abc            00, 01, ...                     the state, compressed, in pieces

A release goes on the stream as several adjustments, each with an id. The counter takes each id only
once, so a release that was interrupted can simply be repeated.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4
from zlib import compress, decompress

import msgspec

from page_hit_counter.service.table_requests import create_table, query_all
from page_hit_counter.spam.adjustments import Adjustment
from page_hit_counter.spam.detection.detector import LearnedState
from page_hit_counter.spam.detection.forest import Explanation
from page_hit_counter.spam.spam_cases import (
    CaseEvidence,
    SpamCase,
    Status,
    WithheldHits,
    digest,
    summed,
)
from page_hit_counter.spam.spam_filter import Decisions, SpamFilter
from page_hit_counter.spam.spam_settings import SpamSettings
from partita.client import Client
from partita.errors import PartitaError
from partita.foundation.clock import Clock, system_clock

TABLE = "pagehits-quarantine"
DAY_SECONDS = 86_400
RETENTION_DAYS = 7
CASE_ID_CHARACTERS_MAX = 100
"""The ids of real cases have about forty characters."""
LEARNED_PIECE_BYTES_MAX = 300_000
LEARNED_PIECES = 4
"""The learned state, 2,048 points of nine numbers and the usual hits of 5,000 cohorts, fills about
half of these pieces."""
LEARNED_BYTES_MAX = LEARNED_PIECES * LEARNED_PIECE_BYTES_MAX
EVIDENCE_PER_ADJUSTMENT_MAX = 5_000
ROWS_PER_ADJUSTMENT = 1_000
Item = dict[str, Any]


class NoSuchCase(PartitaError):
    pass


class AlreadyReleased(PartitaError):
    pass


class Quarantine:
    def __init__(
        self,
        client: Client,
        table: str = TABLE,
        stream: str = "pagehits",
        retention_days: int = RETENTION_DAYS,
        clock: Clock = system_clock,
    ) -> None:
        self._client = client
        self._table = table
        self._stream = stream
        self._retention_seconds = retention_days * DAY_SECONDS
        self._clock = clock

    @classmethod
    def of(
        cls, client: Client, settings: SpamSettings, stream: str, clock: Clock = system_clock
    ) -> Quarantine:
        return cls(client, settings.quarantine_table, stream, settings.retention_days, clock)

    async def create(self) -> None:
        """Creates the table, unless it exists."""
        await create_table(self._client, quarantine_description(self._table), expires=True)

    async def keep(self, withheld: list[WithheldHits]) -> None:
        """Adds withheld hits to their cases, and puts the evidence beside them."""
        writes = (
            write for hits in withheld for write in (self._add_hits(hits), self._add_evidence(hits))
        )
        await asyncio.gather(*writes)

    async def _add_hits(self, withheld: WithheldHits) -> None:
        members = {
            "subject": _text(withheld.subject),
            "reason": _text(withheld.reason),
            "lastTime": _number(withheld.time),
            "expirationTime": self._expiration(),
        }
        if withheld.score is not None:
            members["score"] = _number(withheld.score)
            members["explanation"] = _text(msgspec.json.encode(withheld.explanation).decode())
        once = {"status": _text(withheld.status), "firstTime": _number(withheld.time)}
        sets = [f"#{name} = :{name}" for name in members]
        sets += [f"#{name} = if_not_exists(#{name}, :{name})" for name in once]
        await self._call(
            "UpdateItem",
            Key=_key(f"cases#{withheld.brand}", withheld.case_id),
            UpdateExpression=f"SET {', '.join(sets)} ADD hits :hits",
            ExpressionAttributeNames={f"#{name}": name for name in (*members, *once)},
            ExpressionAttributeValues={
                **{f":{name}": value for name, value in (members | once).items()},
                ":hits": _number(withheld.hits),
            },
        )

    async def _add_evidence(self, withheld: WithheldHits) -> None:
        name = f"{withheld.time}#{uuid4().hex[:12]}"
        await self._call(
            "PutItem",
            Item={
                **_key(f"evidence#{withheld.brand}#{withheld.case_id}", name),
                "evidence": _compressed(withheld.evidence),
                "expirationTime": self._expiration(),
            },
        )

    # Reading

    async def cases(
        self, brand: str, status: Status | None = None, limit: int = 100
    ) -> list[SpamCase]:
        """Returns the cases of a brand, newest first."""
        cases: list[SpamCase] = []
        async for item in self._items(f"cases#{brand}", forward=False):
            case = _case(brand, item)
            if status in (None, case.status):
                cases.append(case)
                if len(cases) == limit:
                    break
        return cases

    async def case(self, brand: str, case_id: str) -> SpamCase:
        answer: Item = {}
        if len(case_id) <= CASE_ID_CHARACTERS_MAX:
            answer = await self._call("GetItem", Key=_key(f"cases#{brand}", case_id))
        if "Item" not in answer:
            raise NoSuchCase(f"There is no case {case_id} of {brand} in the quarantine.")
        return _case(brand, answer["Item"])

    async def evidence(self, brand: str, case_id: str) -> dict[str, CaseEvidence]:
        """Returns the evidence of a case, by range key."""
        return {
            item["rangeKey"]["S"]: _expanded(item["evidence"])
            async for item in self._items(f"evidence#{brand}#{case_id}")
        }

    # Deciding

    async def release(self, brand: str, case_id: str) -> SpamCase:
        """Counts what was withheld, in the windows that it belongs to."""
        case = await self.case(brand, case_id)
        if case.status in ("quarantined", "confirmed"):
            case = await self._mark(case, "releasing", expected=case.status)
        if case.status == "releasing":
            evidence = await self.evidence(brand, case_id)
            for number, names in (await self._plan(brand, case_id, evidence)).items():
                rows = summed(evidence[name] for name in names if name in evidence)
                if rows:
                    await self._adjust(Adjustment(f"release:{brand}:{case_id}:{number}", rows))
        return await self._decide(case, "released")

    async def _plan(
        self, brand: str, case_id: str, evidence: dict[str, CaseEvidence]
    ) -> dict[str, list[str]]:
        """Returns which evidence each adjustment releases. The plan is written before any
        adjustment is sent, because a repeated release must send the same hits with the same id."""
        hash_key = f"release#{brand}#{case_id}"
        plan = {i["rangeKey"]["S"]: i["pieces"]["SS"] async for i in self._items(hash_key)}
        planned = {name for names in plan.values() for name in names}
        left = [name for name in evidence if name not in planned]
        while left:
            number, names = f"{len(plan):05}", _first_rows(left, evidence)
            await self._call(
                "PutItem",
                Item={
                    **_key(hash_key, number),
                    "pieces": {"SS": names},
                    "expirationTime": self._expiration(),
                },
                # Two releases at the same time must not plan different hits under one id.
                ConditionExpression="attribute_not_exists(hashKey)",
            )
            plan[number], left = names, left[len(names) :]
        return plan

    async def confirm(self, brand: str, case_id: str) -> SpamCase:
        """Marks a case as spam. What its subject sends from now on is withheld too."""
        case = await self.case(brand, case_id)
        if case.status in ("releasing", "released"):
            raise AlreadyReleased(
                f"The case {case_id} of {brand} has been released: its hits are counted already."
            )
        return await self._decide(case, "confirmed")

    async def _decide(self, case: SpamCase, status: Status) -> SpamCase:
        await self._call(
            "PutItem",
            Item={
                **_key(f"decisions#{case.brand}", f"{case.reason}#{digest(case.subject)}"),
                "reason": _text(case.reason),
                "subject": _text(case.subject),
                "isConfirmed": {"BOOL": status == "confirmed"},
                "expirationTime": self._expiration(),
            },
        )
        return await self._mark(case, status, expected=case.status)

    async def _mark(self, case: SpamCase, status: Status, expected: Status) -> SpamCase:
        answer = await self._call(
            "UpdateItem",
            Key=_key(f"cases#{case.brand}", case.id),
            UpdateExpression="SET #status = :status",
            ConditionExpression="#status = :expected",
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues={":status": _text(status), ":expected": _text(expected)},
            ReturnValues="ALL_NEW",
        )
        return _case(case.brand, answer["Attributes"])

    async def _adjust(self, adjustment: Adjustment) -> None:
        await self._client.call(
            "kinesis",
            "PutRecord",
            {
                "StreamName": self._stream,
                "PartitionKey": adjustment.rows[0].brand,
                "Data": b64encode(adjustment.encode()).decode(),
            },
        )

    # What the spam filter has learned, across restarts

    async def restore(self, spam_filter: SpamFilter) -> None:
        """Loads what an earlier spam filter has learned, and the decisions of people."""
        learned = {}
        async for entry in self._items("brands"):
            brand = entry["rangeKey"]["S"]
            pieces = [item async for item in self._items(f"learned#{brand}")]
            content = b"".join(b64decode(piece["content"]["B"]) for piece in pieces)
            learned[brand] = msgspec.msgpack.decode(decompress(content), type=LearnedState)
            spam_filter.decide(brand, await self._decisions(brand))
        spam_filter.relearn(learned)

    async def refresh(self, spam_filter: SpamFilter) -> None:
        for brand in spam_filter.brands:
            spam_filter.decide(brand, await self._decisions(brand))

    async def _decisions(self, brand: str) -> Decisions:
        return {
            (item["reason"]["S"], item["subject"]["S"]): item["isConfirmed"]["BOOL"]
            async for item in self._items(f"decisions#{brand}")
        }

    async def save(self, spam_filter: SpamFilter) -> None:
        """Writes what the spam filter has learned, in one transaction, so that nobody reads half of
        it."""
        for brand, learned in spam_filter.learned().items():
            content = compress(msgspec.msgpack.encode(learned))
            # All pieces are always written, so that a short state does not leave the end of a
            # longer one behind.
            items = [
                {
                    **_key(f"learned#{brand}", f"{number:02}"),
                    "content": {
                        "B": b64encode(content[first : first + LEARNED_PIECE_BYTES_MAX]).decode()
                    },
                }
                for number, first in enumerate(range(0, LEARNED_BYTES_MAX, LEARNED_PIECE_BYTES_MAX))
            ]
            puts = [{"TableName": self._table, "Item": item} for item in items]
            puts.append({"TableName": self._table, "Item": _key("brands", brand)})
            await self._client.call(
                "dynamodb", "TransactWriteItems", {"TransactItems": [{"Put": put} for put in puts]}
            )

    # Requests

    async def _call(self, operation: str, **request: Any) -> dict[str, Any]:
        return await self._client.call("dynamodb", operation, {"TableName": self._table, **request})

    def _items(self, hash_key: str, forward: bool = True) -> AsyncIterator[Item]:
        request = {
            "TableName": self._table,
            "KeyConditionExpression": "hashKey = :hashKey",
            "ExpressionAttributeValues": {":hashKey": _text(hash_key)},
            "ScanIndexForward": forward,
            "ConsistentRead": True,
        }
        return query_all(self._client, request)

    def _expiration(self) -> dict[str, str]:
        return _number(int(self._clock()) + self._retention_seconds)


def quarantine_description(table: str) -> dict[str, Any]:
    """Returns the request of CreateTable."""
    keys = (("hashKey", "HASH"), ("rangeKey", "RANGE"))
    return {
        "TableName": table,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
        "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in keys],
    }


def _case(brand: str, item: Item) -> SpamCase:
    explanation = item.get("explanation", {"S": "[]"})["S"]
    return SpamCase(
        id=item["rangeKey"]["S"],
        brand=brand,
        reason=item["reason"]["S"],
        subject=item["subject"]["S"],
        status=item["status"]["S"],
        hits=int(item["hits"]["N"]),
        first_time=int(item["firstTime"]["N"]),
        last_time=int(item["lastTime"]["N"]),
        score=float(item["score"]["N"]) if "score" in item else None,
        explanation=msgspec.json.decode(explanation, type=list[Explanation]),
    )


def _first_rows(names: list[str], evidence: dict[str, CaseEvidence]) -> list[str]:
    """Returns as many pieces of evidence as one record of the stream holds easily."""
    rows = 0
    for number, name in enumerate(names[:EVIDENCE_PER_ADJUSTMENT_MAX]):
        rows += len(evidence[name].rows)
        if rows >= ROWS_PER_ADJUSTMENT:
            return names[: number + 1]
    return names[:EVIDENCE_PER_ADJUSTMENT_MAX]


def _key(hash_key: str, range_key: str) -> Item:
    return {"hashKey": _text(hash_key), "rangeKey": _text(range_key)}


def _text(value: str) -> dict[str, str]:
    return {"S": value}


def _number(value: float) -> dict[str, str]:
    return {"N": str(value)}


def _compressed(evidence: CaseEvidence) -> dict[str, str]:
    return {"B": b64encode(compress(msgspec.json.encode(evidence))).decode()}


def _expanded(value: dict[str, str]) -> CaseEvidence:
    return msgspec.json.decode(decompress(b64decode(value["B"])), type=CaseEvidence)
