"""Measures the delay and the cost of the four ways to deliver visits in figure 5.1 of the thesis.

    python -m benchmarks.applications.delivery

Each way runs in processes of its own: database, processor and delivery stream, with buffers of five
seconds, and a schedule every five (`--time-scale 12` makes them of a minute). The delay of a visit
is from when it was sent to when it is on the counter's stream. Beside it is the model behind
`partita pagehits cost`, for the same buffers, and its dollars for Firehose's own.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from base64 import b64decode
from pathlib import Path
from typing import Any

import orjson

from page_hit_counter.aws.aws_costs import read_prices
from page_hit_counter.aws.delivery_costs import (
    dollars_month,
    longest_delay_seconds,
    mean_delay_seconds,
)
from page_hit_counter.delivery.delivery_settings import OPTIONS
from page_hit_counter.service.service_supervisor import SupervisedProcess
from partita.client import Client

BUFFER_SECONDS = 5
SCHEDULE_SECONDS = 5
TIME_SCALE = 60 // SCHEDULE_SECONDS
VISITS_SECOND = 50
SECONDS = 20
ASSET = 132141398
SETTINGS = """
lateness_seconds = 80

[spam]
mode = "off"

[delivery]
route = "{route}"
buffer_seconds = {buffer}
schedule_minutes = 1
"""


async def measure(route: str) -> list[float]:
    with tempfile.TemporaryDirectory(prefix="partita-delivery-") as folder:
        config = Path(folder) / "pagehits.toml"
        config.write_text(SETTINGS.format(route=route, buffer=BUFFER_SECONDS))
        serve = ["serve", "--in-memory", "--time-scale", str(TIME_SCALE), "--port", "0"]
        database = SupervisedProcess(serve, _say)
        await database.start()
        own = ["pagehits", "serve", "--config", str(config), "--endpoint", database.url]
        own += ["--parts", "processor,delivery", "--port", "0"]
        service = SupervisedProcess(own, _say)
        await service.start()
        client = Client(database.url)
        try:
            item = {
                "assetId": {"N": str(ASSET)},
                "brand": {"S": "abc"},
                "resourceType": {"S": "article"},
            }
            await client.call("dynamodb", "PutItem", {"TableName": "pagehits-assets", "Item": item})
            await _send(service.url)
            return await _delays(client, VISITS_SECOND * SECONDS)
        finally:
            await client.close()
            await service.stop()
            await database.stop()


async def _send(url: str) -> None:
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    began = time.monotonic()
    for number in range(VISITS_SECOND * SECONDS):
        await asyncio.sleep(max(0.0, began + number / VISITS_SECOND - time.monotonic()))
        visit = {"assetId": ASSET, "sectionId": 1, "paidType": "free", "time": time.time()}
        body = orjson.dumps([visit])
        head = f"POST /events HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
    writer.close()


async def _delays(client: Client, count: int) -> list[float]:
    """Waits until all visits have arrived, and returns their delays."""
    while True:
        found = await _arrived(client)
        if len(found) >= count:
            return found
        await asyncio.sleep(1)


async def _arrived(client: Client) -> list[float]:
    found: list[float] = []
    listed = await client.call("kinesis", "ListShards", {"StreamName": "pagehits"})
    for shard in listed["Shards"]:
        start: dict[str, Any] = {
            "StreamName": "pagehits",
            "ShardId": shard["ShardId"],
            "ShardIteratorType": "TRIM_HORIZON",
        }
        answer = await client.call("kinesis", "GetShardIterator", start)
        iterator = answer["ShardIterator"]
        while iterator:
            page = await client.call("kinesis", "GetRecords", {"ShardIterator": iterator})
            for record in page["Records"]:
                arrived = record["ApproximateArrivalTimestamp"]
                packed = orjson.loads(b64decode(record["Data"]))
                found += (arrived - visit["time"] for visit in packed["visits"])
            iterator = page.get("NextShardIterator") if page["Records"] else None
    return found


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main() -> None:
    prices = read_prices("today")
    rows = ["| option | route | mean | longest | modelled mean | longest | dollars a month |"]
    rows.append("| --- | --- | --- | --- | --- | --- | --- |")
    for letter, route in OPTIONS.items():
        delays = asyncio.run(measure(route))
        mean, longest = statistics.fmean(delays), max(delays)
        modelled = mean_delay_seconds(route, BUFFER_SECONDS, SCHEDULE_SECONDS)
        at_most = longest_delay_seconds(route, BUFFER_SECONDS, SCHEDULE_SECONDS)
        dollars = dollars_month(prices.functions, prices.delivery, route)
        rows.append(
            f"| {letter} | {route} | {mean:.1f} s | {longest:.1f} s | {modelled:g} s | "
            f"{at_most:g} s | {dollars:.2f} |"
        )
    sys.stdout.write("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
