"""`partita partitions`: draws the partitions of a table, or computes how many one would need."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any

from partita.database.capacity.partition_sizing import partitions_for
from partita.errors import PartitaError
from partita.foundation.service_limits import (
    GB,
    PARTITION_BYTES_MAX,
    PARTITION_READ_UNITS,
    PARTITION_WRITE_UNITS,
)
from partita.server.monitoring.display_format import shown_key
from partita.server.monitoring.page_fetching import fetch_json

BAR_CHARS = 20
SIZE_STEPS = ((GB, "GB"), (GB // 1024, "MB"), (1024, "KB"))


def drawn(endpoint: str, table: str) -> Iterator[str]:
    """Yields the lines: a range of hashes each, with size, load and hottest keys."""
    answer = fetch_json(endpoint, "/partitions", table=table)
    for resource in answer["Resources"]:
        partitions = resource["Partitions"]
        name = "/".join(filter(None, (resource["TableName"], resource.get("IndexName"))))
        yield f"{name}: {len(partitions)} partition{'s' if len(partitions) > 1 else ''}"
        for number, partition in enumerate(partitions):
            yield f"  {number:>4}  {_line(partition)}"
    if answer["Capacity"] == "off":
        yield "Loads are not measured: start the server with --capacity observe or enforce."


def _line(partition: dict[str, Any]) -> str:
    load = partition["Load"]
    filled = min(BAR_CHARS, round(load * BAR_CHARS))
    size = ("" if partition["SizeIsMeasured"] else "~") + _shown_size(partition["SizeBytes"])
    keys = ", ".join(
        f"{shown_key(hot_key['Key'])} {hot_key['Share']:.0%}"
        for hot_key in partition["HottestKeys"]
    )
    return (
        f"{partition['FirstHash']}..{partition['LastHash']}  {size:>9}  "
        f"[{'#' * filled:<{BAR_CHARS}}] {load:>4.0%}  {keys}"
    ).rstrip()


def _shown_size(size_bytes: int) -> str:
    for step, unit in SIZE_STEPS:
        if size_bytes >= step:
            return f"{size_bytes / step:.1f} {unit}"
    return f"{size_bytes} B"


def sizing(read_units: float, write_units: float, size_gb: float) -> Iterator[str]:
    """Yields how many partitions a throughput and a size take, and the throughput of each."""
    if not isfinite(read_units + write_units + size_gb * GB):
        raise PartitaError("Units and gigabytes are finite numbers.")
    result = partitions_for(read_units, write_units, size_gb * GB)
    yield (
        f"by throughput  {result.by_throughput} = "
        f"round up({read_units:g} / {PARTITION_READ_UNITS} + {write_units:g} / "
        f"{PARTITION_WRITE_UNITS})"
    )
    most = PARTITION_BYTES_MAX // GB
    yield f"by storage     {result.by_storage} = round up({size_gb:g} GB / {most} GB)"
    yield (
        f"partitions     {result.partitions}, each with {result.read_units_each:g} RCU and "
        f"{result.write_units_each:g} WCU"
    )
