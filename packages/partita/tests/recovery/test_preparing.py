"""A child process prepares large inputs with the same result as the server itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from partita.database.item.key_encoding import KeyAttribute
from partita.database.recovery.s3.import_formats import CSV, DYNAMODB_JSON, ObjectPiece
from partita.database.recovery.s3.record_preparation import (
    PreparationProcess,
    PreparedItem,
    UnusableRecord,
    prepare,
)
from partita.database.tables.definition.table_schema import Table
from partita.errors import StorageError

from .test_bulk import asked, client, create, ended, item, scanned, settings, write
from .test_export_import import imported
from .test_kill import until

__all__ = ["client", "settings"]

TABLE = Table(
    name="prepared",
    number=7,
    table_id="id",
    created_at=0.0,
    attribute_types={"pk": "S"},
    partition=KeyAttribute("pk", "S"),
)
LINES = [
    {"Item": {"pk": {"S": "é"}, "n": {"N": "1.50"}, "s": {"SS": ["b", "a"]}}},
    {"Item": {"pk": {"S": "a"}}, "ConditionExpression": "attribute_not_exists(pk)"},
    {"Item": {"pk": {"N": "1"}}},
    {"Item": {"pk": {"S": "a"}}, "Unknown": 12345678901234567890123},
    {
        "Item": {"pk": {"S": "a"}},
        "ConditionExpression": "v = :v",
        "ExpressionAttributeValues": {":v": 5},
    },
    {"Item": 5},
]
PIECES = [
    ObjectPiece(DYNAMODB_JSON, "\n".join(map(json.dumps, LINES)).encode() + b"\n\xff\n{"),
    ObjectPiece(CSV, b"a;1\nb\n;2\n", ["pk", "v"], ";"),
    ObjectPiece(CSV, b"\xff", ["pk"]),
    ObjectPiece(
        DYNAMODB_JSON, b'{"Item":{"pk":{"S":"a"},"l":%b%b}}' % (b'{"L":[' * 5000, b"]}" * 5000)
    ),
]


@pytest.fixture(scope="module")
def preparing() -> Iterator[PreparationProcess]:
    process = PreparationProcess()
    assert process.joined(1 << 30, "NONE") is process
    yield process
    process.leave()


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bucket")


@pytest.mark.parametrize("piece", PIECES)
def test_both_ways_give_the_same(preparing: PreparationProcess, piece: ObjectPiece) -> None:
    assert preparing.receive(preparing.send(piece, TABLE)) == list(prepare(piece, TABLE))


def test_answers_wait_for_whoever_asked(preparing: PreparationProcess) -> None:
    sent = [preparing.send(piece, TABLE) for piece in PIECES]
    for one, piece in reversed(list(zip(sent, PIECES, strict=True))):
        assert preparing.receive(one) == list(prepare(piece, TABLE))


def test_what_cannot_be_used_is_told_apart() -> None:
    kinds = [type(one) for one in prepare(PIECES[0], TABLE)]
    assert kinds == [PreparedItem, PreparedItem, *[UnusableRecord] * 6]
    first = next(prepare(PIECES[0], TABLE))
    assert isinstance(first, PreparedItem)
    assert first.value.endswith(b'{"pk":{"S":"\xc3\xa9"},"n":{"N":"1.5"},"s":{"SS":["a","b"]}}')


def test_what_is_nested_too_deeply_is_one_error() -> None:
    (only,) = prepare(PIECES[-1], TABLE)
    assert isinstance(only, UnusableRecord)
    assert only.message == "a record is nested too deeply"


def test_small_inputs_need_no_process() -> None:
    process = PreparationProcess()
    assert process.joined(1000, "GZIP") is None
    process.leave()


def test_nobody_waits_until_the_process_has_started() -> None:
    process = PreparationProcess()
    assert process.joined(1 << 18, "GZIP") is process
    assert not process.is_ready()
    until(process.is_ready)
    assert process.receive(process.send(PIECES[0], TABLE)) == list(prepare(PIECES[0], TABLE))
    process.leave()


def test_a_process_that_ended_is_said_and_replaced(preparing: PreparationProcess) -> None:
    preparing.receive(preparing.send(PIECES[1], TABLE))
    assert preparing._process is not None
    preparing._process.popen.kill()
    preparing._process.popen.wait()
    with pytest.raises(StorageError, match="has ended"):
        preparing.receive(preparing.send(PIECES[1], TABLE))
    assert len(preparing.receive(preparing.send(PIECES[1], TABLE))) == 3


def test_a_large_input_arrives_whole_with_its_errors_counted(client: Any, bucket: Path) -> None:
    create(client, "large")
    records: list[Any] = [{"Item": item(number, v={"S": "x" * 400})} for number in range(3000)]
    write(bucket, "large/one.json", [*records[:1500], "nothing", *records[1500:]])
    started = client.start_bulk_put_items(**asked("large", "large/"))
    done = ended(client, started["BulkOperationDescription"]["BulkOperationArn"])
    assert (done["ProcessedItemCount"], done["FailedItemCount"]) == (3001, 1)
    expected = {one["Item"]["pk"]["S"]: one["Item"] for one in records}
    assert scanned(client, "large") == expected == scanned(client, "large", IndexName="by_g")
    told = imported(client, "large-import", "large/", InputFormat="DYNAMODB_JSON")
    assert (told["ImportedItemCount"], told["ErrorCount"]) == (3000, 1)
    assert scanned(client, "large-import") == expected
