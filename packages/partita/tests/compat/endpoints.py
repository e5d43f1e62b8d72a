"""Plays a case to one server: its setup, its requests, and away with the tables it made."""

from __future__ import annotations

import http.client
import json
import re
import time
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from .answers import Answer, all_pages, normalised
from .notation import ALL_RECORDS, ARNS, PLACEHOLDER, Body, Case, Step

TABLE_SECONDS_MAX = 60
REQUEST_SECONDS_MAX = 60
PAGES_MAX = 500

HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "Authorization": (
        "AWS4-HMAC-SHA256 Credential=compat/20260101/us-east-1/dynamodb/aws4_request, "
        "SignedHeaders=host;x-amz-date, Signature=0"
    ),
    "X-Amz-Date": "20260101T000000Z",
}

STREAM_OPERATIONS = ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")

# Where a page says that there is another one, and how that one is asked for.
CONTINUATIONS = (
    ("LastEvaluatedKey", "ExclusiveStartKey"),
    ("LastEvaluatedTableName", "ExclusiveStartTableName"),
    ("NextToken", "NextToken"),
)


class Endpoint:
    """A client of a server, over one connection that stays open."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._connection = http.client.HTTPConnection(
            address.hostname or "", address.port, timeout=REQUEST_SECONDS_MAX
        )

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *_error: object) -> None:
        self._connection.close()

    def post(self, operation: str, body: Body | str) -> tuple[int, bytes]:
        content = body if isinstance(body, str) else json.dumps(body)
        content = PLACEHOLDER.sub(self._of_stream, content)
        if ARNS not in content:
            return self._post(operation, content)
        status, answer = self._post(operation, content.replace(ARNS, self._arns))
        return status, answer.replace(self._arns.encode(), ARNS.encode())

    @cached_property
    def _arns(self) -> str:
        """Returns the beginning of this server's ARNs, taken from an existing table."""
        names = json.loads(self._post("ListTables", "{}")[1])["TableNames"]
        table = json.loads(self._post("DescribeTable", json.dumps({"TableName": names[0]}))[1])
        arn: str = table["Table"]["TableArn"]
        return arn.removesuffix(f"table/{names[0]}")

    def _of_stream(self, placeholder: re.Match[str]) -> str:
        """Returns a placeholder's value: the last stream of a table, a shard or an iterator."""
        kind, table = placeholder.groups()
        arn = self._ask("DescribeTable", {"TableName": table})["Table"]["LatestStreamArn"]
        if kind == "stream":
            return str(arn)
        shard_id = self._shard_ids(arn)[0]
        return shard_id if kind == "shard" else self._iterator(arn, shard_id)

    def _shard_ids(self, arn: str) -> list[str]:
        description = self._ask("DescribeStream", {"StreamArn": arn})["StreamDescription"]
        return [shard["ShardId"] for shard in description["Shards"]]

    def _iterator(self, arn: str, shard_id: str) -> str:
        asked = {"StreamArn": arn, "ShardId": shard_id, "ShardIteratorType": "TRIM_HORIZON"}
        return str(self._ask("GetShardIterator", asked)["ShardIterator"])

    def _all_records(self, table: str) -> bytes:
        """Everything in the last stream of a table, shards or not, in the order of its items."""
        arn = self._ask("DescribeTable", {"TableName": table})["Table"]["LatestStreamArn"]
        iterators = [self._iterator(arn, shard_id) for shard_id in self._shard_ids(arn)]
        pages = [self._ask("GetRecords", {"ShardIterator": iterator}) for iterator in iterators]
        records = [record for page in pages for record in page["Records"]]
        records.sort(key=lambda record: json.dumps(record["dynamodb"]["Keys"], sort_keys=True))
        return json.dumps({"Records": records}).encode()

    def _ask(self, operation: str, body: Body) -> Body:
        status, content = self._post(operation, json.dumps(body))
        assert status == 200, content
        answer: Body = json.loads(content)
        return answer

    def _post(self, operation: str, content: str) -> tuple[int, bytes]:
        service = "DynamoDBStreams" if operation in STREAM_OPERATIONS else "DynamoDB"
        target = f"{service}_20120810.{operation}"
        headers = {**HEADERS, "X-Amz-Target": target}
        try:
            return self._exchange(content, headers)
        except (OSError, http.client.HTTPException):
            # A server may close a connection that was idle; then there is a new one.
            self._connection.close()
            return self._exchange(content, headers)

    def _exchange(self, content: str, headers: dict[str, str]) -> tuple[int, bytes]:
        self._connection.request("POST", "/", content.encode(), headers)
        response = self._connection.getresponse()
        return response.status, response.read()

    def play(self, case: Case) -> list[Answer]:
        """The answers to the steps of the case."""
        created: list[str] = []
        try:
            for step in case.setup:
                answer = self._answer(step, created)
                assert answer.status == 200, f"setup: {step.operation} {step.body}: {answer}"
            return [self._answer(step, created) for step in case.steps]
        finally:
            for table in created:
                self._remove(table)

    def _answer(self, step: Step, created: list[str]) -> Answer:
        if step.operation == ALL_RECORDS:
            assert isinstance(step.body, dict)
            return normalised(200, self._all_records(step.body["TableName"]))
        if step.to_the_end:
            return all_pages(self._pages(step), step.unordered)
        status, content = self.post(step.operation, step.body)
        if status == 200 and step.operation in SETTLED:
            assert isinstance(step.body, dict)
            table = step.body["TableName"]
            if step.operation == "CreateTable":
                created.append(table)
            SETTLED[step.operation](self, table)
        return normalised(status, content, step.unordered)

    def _pages(self, step: Step) -> list[Answer]:
        assert isinstance(step.body, dict)
        pages: list[Answer] = []
        body: Body | None = dict(step.body)
        while body is not None:
            assert len(pages) < PAGES_MAX, "the pages do not end"
            status, content = self.post(step.operation, body)
            pages.append(normalised(status, content, step.unordered))
            body = _next_request(body, json.loads(content))
        return pages

    def _remove(self, table: str) -> None:
        """Deletes a table of a case, in whatever state the case left it."""
        status, content = self.post("DeleteTable", {"TableName": table})
        if status != 200 and b"protected against deletion" in content:
            self.post("UpdateTable", {"TableName": table, "DeletionProtectionEnabled": False})
            self.wait_until_active(table)
            status, content = self.post("DeleteTable", {"TableName": table})
        assert status == 200 or b"ResourceNotFoundException" in content, content
        self.wait_until_gone(table)

    def wait_until_active(self, table: str) -> None:
        self._wait(table, _is_active)

    def wait_until_gone(self, table: str) -> None:
        self._wait(table, lambda description: description is None)

    def _wait(self, table: str, reached: Any) -> None:
        deadline = time.monotonic() + TABLE_SECONDS_MAX
        while True:
            status, content = self.post("DescribeTable", {"TableName": table})
            description = json.loads(content)["Table"] if status == 200 else None
            if reached(description):
                return
            assert time.monotonic() < deadline, f"{table} is still {description}"
            time.sleep(0.002)


# After these requests a table needs a moment; the next request comes when it is over.
SETTLED = {
    "CreateTable": Endpoint.wait_until_active,
    "UpdateTable": Endpoint.wait_until_active,
    "DeleteTable": Endpoint.wait_until_gone,
}


def _is_active(description: Body | None) -> bool:
    if description is None:
        return False
    indexes = description.get("GlobalSecondaryIndexes", [])
    statuses = [description["TableStatus"], *(index["IndexStatus"] for index in indexes)]
    return all(status == "ACTIVE" for status in statuses)


def _next_request(request: Body, answer: Body) -> Body | None:
    for last, start in CONTINUATIONS:
        if last in answer:
            return {**request, start: answer[last]}
    return None
