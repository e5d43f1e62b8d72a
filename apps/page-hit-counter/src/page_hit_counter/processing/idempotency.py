"""Remembers which body an Idempotency-Key was first used with, as long as the counter does.

The counter counts the first batch of a key. Another batch with the same key would be answered as
accepted but never be counted, so it is refused instead.
"""

from __future__ import annotations

from hashlib import sha256

from partita.client import Client, ClientError
from partita.foundation.clock import Clock, system_clock

REMEMBERED_SECONDS = 900.0
"""The counter recognises a record that arrives again for as long (`counting.tally`)."""
PREFIX = "idempotency "


class IdempotencyKeys:
    def __init__(self, client: Client, table: str, clock: Clock = system_clock) -> None:
        """`table` is the counter's state table, whose key is a name and a number."""
        self._client = client
        self._table = table
        self._clock = clock

    async def claim(self, key: str, body: bytes) -> bool:
        """Claims a key for a body. Returns False when the key was used with another body."""
        now = self._clock()
        digest = {"S": sha256(body).hexdigest()}
        put = {
            "TableName": self._table,
            "Item": {
                "name": {"S": PREFIX + key},
                "number": {"N": "0"},
                "digest": digest,
                "expirationTime": {"N": str(int(now + REMEMBERED_SECONDS))},
            },
            # TTL deletes an expired item only some time later.
            "ConditionExpression": (
                "attribute_not_exists(digest) OR digest = :digest OR expirationTime < :now"
            ),
            "ExpressionAttributeValues": {":digest": digest, ":now": {"N": str(int(now))}},
        }
        try:
            await self._client.call("dynamodb", "PutItem", put)
        except ClientError as error:
            if error.code != "ConditionalCheckFailedException":
                raise
            return False
        return True
