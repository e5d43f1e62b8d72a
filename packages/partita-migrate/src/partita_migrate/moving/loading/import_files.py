"""`load --through s3`: writes items as files for ImportTable, and the request that imports them.

Each chunk of rows becomes one compressed file of DynamoDB JSON, named after the numbers of its
rows. Written again after a kill, it is byte for byte the same file.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

from partita.database.recovery.s3.object_buckets import (
    ENDPOINTS,
    BucketError,
    FolderBucket,
    ObjectBucket,
    S3Bucket,
)
from partita.errors import PartitaError
from partita_migrate.handover.table_requests import tables_of
from partita_migrate.workspace.migration_folder import Folder, to_json

AMAZON = "https://s3.{}.amazonaws.com"
REQUEST = "import-table.json"
CREATED = (
    *("TableName", "AttributeDefinitions", "KeySchema", "BillingMode", "ProvisionedThroughput"),
    *("GlobalSecondaryIndexes", "SSESpecification", "OnDemandThroughput"),
)
"""The parameters of CreateTable that ImportTable accepts too."""


class ImportFiles:
    """Writes import files to `place`: a folder, or `s3://bucket/prefix`."""

    def __init__(self, folder: Folder, place: str, region: str) -> None:
        self.place = place
        self._bucket, self.name, self._prefix = _opened(folder, place, region)

    def begin(self, chunk: str) -> None:
        """Starts a chunk; the next items belong to it."""
        self._chunk = chunk

    def put(self, items: list[tuple[str, bytes]]) -> None:
        by_table: dict[str, list[bytes]] = {}
        for table, item in items:
            by_table.setdefault(table, []).append(b'{"Item":%b}\n' % item)
        for table, lines in by_table.items():
            # Without a time in its header, the file has the same bytes whenever it is written.
            content = gzip.compress(b"".join(lines), compresslevel=1, mtime=0)
            self._put(f"{table}/data/{self._chunk}.json.gz", content)

    def write_requests(self, folder: Folder, model: str) -> None:
        """Writes the ImportTable request of each table beside its files."""
        for table in tables_of(folder, model):
            if table.local_indexes:
                raise PartitaError(
                    f"{table.name} has a local secondary index, which ImportTable cannot create;"
                    " load without --through."
                )
            request = {
                "S3BucketSource": {
                    "S3Bucket": self.name,
                    "S3KeyPrefix": f"{self._prefix}{table.name}/data/",
                },
                "InputFormat": "DYNAMODB_JSON",
                "InputCompressionType": "GZIP",
                "TableCreationParameters": _parameters(table.create),
            }
            self._put(f"{table.name}/{REQUEST}", to_json(request))

    def _put(self, key: str, content: bytes) -> None:
        try:
            self._bucket.put(self._prefix + key, content)
        except BucketError as error:
            raise PartitaError(f"{self.place} cannot be written to: {error}") from error


def _parameters(created: dict[str, Any]) -> dict[str, Any]:
    return {name: created[name] for name in CREATED if name in created}


def _opened(folder: Folder, place: str, region: str) -> tuple[ObjectBucket, str, str]:
    """Opens `place`; returns the bucket, its name and the prefix of its keys."""
    if place.startswith("s3://"):
        name, _, prefix = place.removeprefix("s3://").partition("/")
        endpoints = (os.environ[variable] for variable in ENDPOINTS if os.environ.get(variable))
        try:
            bucket = S3Bucket(name, next(endpoints, AMAZON.format(region)), {})
        except BucketError as error:
            raise PartitaError(str(error)) from error
        return bucket, name, f"{prefix.rstrip('/')}/" if prefix else ""
    import_folder = (
        (folder.path / place).resolve() if not Path(place).is_absolute() else Path(place)
    )
    import_folder.mkdir(parents=True, exist_ok=True)
    return FolderBucket(import_folder.resolve()), import_folder.name, ""
