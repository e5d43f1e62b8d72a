"""Creates the counter's tables and the stream of counts that its consumer reads."""

from __future__ import annotations

import asyncio
import os

import boto3

from page_hit_counter.pagehits_settings import load
from page_hit_counter.service import stream_and_tables
from partita.client import Client


async def create() -> None:
    client = Client(os.environ["AWS_ENDPOINT_URL"])
    await stream_and_tables.create(client, load(None))
    await client.close()


asyncio.run(create())
boto3.client("kinesis").create_stream(StreamName="pagehits-counts", ShardCount=2)
