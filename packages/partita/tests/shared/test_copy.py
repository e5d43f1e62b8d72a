"""`partita storage copy`: a data folder into PostgreSQL and back."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path
from typing import Any

from testkit.data.item_tables import active, backed_up, item
from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL
from testkit.servers.shared_storage import storage_url

ROWS = 60
INDEX = {
    "IndexName": "by-group",
    "KeySchema": [{"AttributeName": "group", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "ALL"},
}


def test_a_folder_is_copied_into_postgresql_and_back(
    postgresql: PostgreSQL, tmp_path: Path
) -> None:
    storage = storage_url(postgresql, "copied")
    folder, back = tmp_path / "folder", tmp_path / "back"
    with processes.starting() as start:
        of_folder = start("serve", "--port", "0", "--data", folder).client()
        before = _filled(of_folder)
        backup = backed_up(of_folder, "copied")
    copied = processes.run("storage", "copy", folder, storage)
    assert copied.returncode == 0, copied.stdout + copied.stderr
    assert "no findings" in copied.stdout
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--storage", storage)
        client = server.client()
        assert _content(client) == before
        assert _stream_records(server) == ROWS
        client.put_item(TableName="copied", Item={**item("later"), "group": {"N": "1"}})
        after = _content(client)
        client.restore_table_from_backup(BackupArn=backup, TargetTableName="restored")
        active(client, "restored")
        assert client.scan(TableName="restored", Select="COUNT")["Count"] == ROWS
        refused = processes.run("storage", "copy", folder, storage)
        assert (refused.returncode, refused.stderr) == (
            1,
            "partita: The database has data already: copy into a new one.\n",
        )
    copied_back = processes.run("storage", "copy", storage, back)
    assert copied_back.returncode == 0, copied_back.stdout + copied_back.stderr
    with processes.starting() as start:
        assert _content(start("serve", "--port", "0", "--data", back).client()) == after


def test_a_copy_that_was_interrupted_is_not_served_and_goes_on(
    postgresql: PostgreSQL, tmp_path: Path
) -> None:
    storage = storage_url(postgresql, "interrupted")
    with processes.starting() as start:
        before = _filled(start("serve", "--port", "0", "--data", tmp_path).client())
    assert processes.run("storage", "copy", tmp_path, storage).returncode == 0
    # A state in the middle of a copy: some rows are there, some are wrong, the format is not set.
    postgresql.execute(
        """UPDATE partita_format SET version = 0;
        DELETE FROM partita_rows WHERE substr(key, 1, 1) = '\\x11';
        UPDATE partita_rows SET value = 'other' WHERE substr(key, 1, 1) = '\\x10';
        INSERT INTO partita_rows VALUES ('\\x10ffffff', 0, 'more', 5)""",
        "interrupted",
    )
    refused = processes.run("serve", "--port", "0", "--storage", storage)
    assert refused.returncode == 1
    assert "A copy into the database was not finished" in refused.stderr
    again = processes.run("storage", "copy", tmp_path, storage)
    assert again.returncode == 0, again.stdout + again.stderr
    assert f"{2 * ROWS + 1} written" in again.stdout
    with processes.starting() as start:
        assert _content(start("serve", "--port", "0", "--storage", storage).client()) == before


def _filled(client: Any) -> Any:
    client.create_table(
        TableName="copied",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "group", "AttributeType": "N"},
        ],
        GlobalSecondaryIndexes=[INDEX],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
        BillingMode="PAY_PER_REQUEST",
    )
    for place in range(ROWS):
        row = {**item(f"k{place}"), "group": {"N": str(place % 3)}}
        client.put_item(TableName="copied", Item=row)
    return _content(client)


def _content(client: Any) -> Any:
    indexed = client.scan(TableName="copied", IndexName="by-group")["Items"]
    described = client.describe_table(TableName="copied")["Table"]
    figures = described["ItemCount"], described["TableSizeBytes"], described["TableId"]
    return client.scan(TableName="copied")["Items"], indexed, figures


def _stream_records(server: processes.Server) -> int:
    streams = server.client("dynamodbstreams")
    (stream,) = streams.list_streams(TableName="copied")["Streams"]
    arn = stream["StreamArn"]
    found = 0
    for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        iterator = streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        found += len(streams.get_records(ShardIterator=iterator)["Records"])
    return found


def test_a_folder_is_copied_while_it_is_served(postgresql: PostgreSQL, tmp_path: Path) -> None:
    storage = storage_url(postgresql, "followed")
    folder = tmp_path / "folder"
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--data", folder)
        client = server.client()
        _filled(client)
        copying = subprocess.Popen(
            [*processes.COMMAND, "storage", "copy", str(folder), storage],
            stdout=subprocess.PIPE,
            text=True,
            env=processes.ENVIRONMENT,
        )
        assert copying.stdout is not None
        assert "is followed until its server stops" in copying.stdout.readline()
        for place in range(ROWS, 2 * ROWS):
            row = {**item(f"k{place}"), "group": {"N": str(place % 3)}}
            client.put_item(TableName="copied", Item=row)
        client.delete_item(TableName="copied", Key=item("k0"))
        assert "Stop the server when it suits" in copying.stdout.readline()
        client.put_item(TableName="copied", Item={**item("last"), "group": {"N": "1"}})
        before = _content(client)
        server.terminate()
    said, _ = copying.communicate(timeout=60)
    assert copying.returncode == 0, said
    assert "Source and copy are equal." in said
    with processes.starting() as start:
        assert _content(start("serve", "--port", "0", "--storage", storage).client()) == before


def test_an_encrypted_folder_is_copied_with_its_key(postgresql: PostgreSQL, tmp_path: Path) -> None:
    storage = storage_url(postgresql, "opened")
    folder, key = tmp_path / "folder", tmp_path / "key"
    key.touch(0o600)
    key.write_text(base64.b64encode(bytes(range(32))).decode())
    key.chmod(0o600)
    option = ("--encryption-key", f"file:{key}")
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--data", folder, *option)
        before = _filled(server.client())
    refused = processes.run("storage", "copy", folder, storage)
    assert refused.returncode == 1
    assert "is encrypted: give --encryption-key" in refused.stderr
    copied = processes.run("storage", "copy", folder, storage, *option)
    assert copied.returncode == 0, copied.stdout + copied.stderr
    with processes.starting() as start:
        assert _content(start("serve", "--port", "0", "--storage", storage).client()) == before
