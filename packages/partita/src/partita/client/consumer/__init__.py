"""A stream consumer: workers share the shards of a Kinesis or DynamoDB stream through leases."""

from __future__ import annotations

from partita.client.consumer.kinesis_consumer import Checkpoint, Consumer, Record

__all__ = ["Checkpoint", "Consumer", "Record"]
