"""Creates the counter's tables and the stream of counts that its consumer reads."""

from __future__ import annotations

import asyncio
import os

import boto3

from page_hit_counter.service import schema
from page_hit_counter.settings import load
from partita.client import Client


async def create() -> None:
    client = Client(os.environ["AWS_ENDPOINT_URL"])
    await schema.create(client, load(None))
    await client.close()


asyncio.run(create())
boto3.client("kinesis").create_stream(StreamName="pagehits-counts", ShardCount=2)
