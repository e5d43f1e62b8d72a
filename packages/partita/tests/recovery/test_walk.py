"""docs/how-to/back-up-and-recover.md, command by command: what the page says is what happens."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from testkit import ROOT
from testkit.servers import processes

from .test_faults import settings
from .test_kill import is_active, restorable, until
from .test_others import ANYBODY, s3, tools

__all__ = ["s3", "tools"]

PAGE = ROOT / "docs" / "how-to" / "back-up-and-recover.md"
PROGRAMS = Path(sys.executable).parent
SECONDS_MAX = 120
UNTIL_STOPPED = "--every"
DIFFERENCES = "partita diff"
"""Exits with 1 if there are any."""

Step = tuple[str, list[str]]
"""A command, and what the page shows of its output."""


def steps(page: str) -> Iterator[Step]:
    for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL):
        text = block.replace("\\\n", " ")
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, *output = part.rstrip("\n").split("\n")
            yield re.sub(r"\s+#.*", "", re.sub(r"\s{2,}", " ", command)).strip(), output


class Walk:
    """A shop with orders, somebody who deletes two of them, and the reader of the page."""

    def __init__(self, folder: Path, start: Any, s3: str) -> None:
        self.folder = folder
        self.start = start
        (folder / "bucket" / "people").mkdir(parents=True)
        (folder / "bucket" / "people" / "a.csv").write_text("id,name\n1,Ada\n")
        (folder / "people.csv").write_text("id,name\n1,Ada\n")
        (folder / "table.json").write_text(
            json.dumps(
                {
                    "TableName": "imported",
                    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                    "BillingMode": "PAY_PER_REQUEST",
                }
            )
        )
        config = settings(folder, exports=folder / "bucket")
        options = ("--port", "0", "--data", str(folder / "data"), "--config", str(config))
        self.server = start("serve", *options)
        self.client = self.server.client()
        self.environment = {
            **processes.ENVIRONMENT,
            **ANYBODY,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_PAGER": "",
            "AWS_ENDPOINT_URL_S3": s3,
            "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
        }
        self.names = {
            "http://localhost:8000": self.server.url,
            "/mnt/backups": str(folder / "backups"),
        }
        self.create_orders()

    def create_orders(self) -> None:
        self.client.create_table(
            TableName="orders",
            KeySchema=[
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "N"},
            ],
            BillingMode="PAY_PER_REQUEST",
        )
        for order, total in (("o17", "12.5"), ("o23", "7"), ("o31", "9")):
            self.put(order, "open", total)

    def put(self, order: str, status: str, total: str) -> None:
        item = {"pk": {"S": order}, "sk": {"N": "1"}, "status": {"S": status}}
        self.client.put_item(TableName="orders", Item={**item, "total": {"N": total}})

    def delete_the_wrong_rows(self) -> None:
        """Between 14:01 and 14:05."""
        until(lambda: restorable(self.client, "orders"))
        self.names["2026-11-16T14:01:59Z"] = self.names["14:01"] = self.moment()
        for order in ("o17", "o23"):
            self.client.delete_item(TableName="orders", Key={"pk": {"S": order}, "sk": {"N": "1"}})
        self.put("o31", "paid", "9")
        self.names["14:05"] = self.moment()

    def moment(self) -> str:
        """A whole second with nothing else in it."""
        time.sleep(1.1 - time.time() % 1)
        now = datetime.fromtimestamp(int(time.time()), UTC)
        time.sleep(0.3)
        return now.strftime("%Y-%m-%dT%H:%M:%SZ")

    def arn(self, command: str) -> str:
        if "--backup-arn" in command:
            (backup,) = self.client.list_backups(TableName="orders")["BackupSummaries"]
            until(
                lambda: (
                    self.client.list_backups()["BackupSummaries"][0]["BackupStatus"] != "CREATING"
                )
            )
            return str(backup["BackupArn"])
        return str(self.client.describe_table(TableName="orders")["Table"]["TableArn"])

    def run(self, command: str) -> str:
        for name, meant in self.names.items():
            command = command.replace(name, meant)
        if " ARN" in command:
            command = command.replace(" ARN", f" {self.arn(command)}")
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            self.environment[name] = value
            return ""
        if command.startswith("partita serve "):
            again = self.start(*command.split()[1:], "--port", "0", cwd=self.folder)
            assert again.client().describe_table(TableName="orders")["Table"]["ItemCount"] == 3
            again.terminate()
            return ""
        return self.shell(command)

    def shell(self, command: str) -> str:
        is_endless = UNTIL_STOPPED in command
        done = subprocess.run(
            ["timeout", "5" if is_endless else str(SECONDS_MAX), "bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        good = (124,) if is_endless else (0, 1) if command.startswith(DIFFERENCES) else (0,)
        assert done.returncode in good, (command, done)
        # What is counted is said beside the output, with a rate that the page leaves out.
        return done.stdout or re.sub(r" \([\d,]+/s\)", "", done.stderr)


BEFORE: dict[str, Callable[[Walk], Any]] = {
    "partita diff orders --at 14:01 --and 14:05": Walk.delete_the_wrong_rows,
    "partita backup s3://company-backups/partita": lambda walk: walk.shell(
        "aws s3api create-bucket --bucket company-backups"
    ),
    "aws dynamodb create-backup": lambda walk: until(lambda: is_active(walk.client, "orders-1401")),
}
"""What happens before a command."""


@pytest.mark.soak
@pytest.mark.skipif(not (PROGRAMS / "aws").exists(), reason="there is no AWS CLI here")
def test_every_command_of_the_page_does_what_it_says(tmp_path: Path, s3: str) -> None:
    with processes.starting() as start:
        walk = Walk(tmp_path, start, s3)
        met = set()
        for command, output in steps(PAGE.read_text()):
            for beginning, happens in BEFORE.items():
                if command.startswith(beginning) and beginning not in met:
                    met.add(beginning)
                    happens(walk)
            printed = walk.run(command)
            if output:
                assert printed.splitlines()[-len(output) :] == output, command
        assert met == BEFORE.keys()
        orders = walk.client.scan(TableName="orders")["Items"]
        assert {item["pk"]["S"]: item["status"]["S"] for item in orders} == {
            "o17": "open",
            "o23": "open",
            "o31": "paid",
        }


def test_the_page_has_commands() -> None:
    commands = [command for command, _ in steps(PAGE.read_text())]
    assert len(commands) > 15
    assert all(re.match(r"(aws|partita|export) ", command) for command in commands)
