"""The service description."""

from __future__ import annotations

import subprocess
import sys

from partita.server.protocol.service_model import STREAMS, load, target


def test_the_description_has_the_operations_and_their_shapes() -> None:
    model = load()
    assert len(model.inputs) >= 57
    assert model.inputs["PutItem"] == "PutItemInput"
    put_item = model.shapes["PutItemInput"]
    assert put_item.required == ("TableName", "Item")
    assert model.shapes[put_item.members["ReturnItemCollectionMetrics"]].enum == ("SIZE", "NONE")


def test_streams_are_a_service_of_their_own() -> None:
    names = {"DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"}
    assert load(STREAMS).inputs.keys() == names
    assert not names & load().inputs.keys()
    assert target("GetRecords") == "DynamoDBStreams_20120810.GetRecords"
    assert target("GetItem") == "DynamoDB_20120810.GetItem"


def test_botocore_is_not_imported() -> None:
    program = (
        "import sys; from partita.server.protocol import service_model; service_model.load();"
        "sys.exit('botocore' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
