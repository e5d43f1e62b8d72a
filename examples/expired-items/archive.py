"""Writes expired items into the folder of a bucket, in one object for each batch.

The name of an object follows from its first record, so a batch that comes twice is written once.
"""

from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

BUCKET = Path(os.environ.get("ARCHIVE", "archive"))


def handler(event: dict[str, Any], context: object) -> None:
    changes = [record["dynamodb"] for record in event["Records"]]
    first = changes[0]
    hour = datetime.fromtimestamp(first["ApproximateCreationDateTime"], UTC)
    path = BUCKET / f"sessions/{hour:%Y/%m/%d/%H}/{first['SequenceNumber']}.jsonl.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    lines = "".join(json.dumps(change["OldImage"]) + "\n" for change in changes)
    part.write_bytes(gzip.compress(lines.encode()))
    part.rename(path)
