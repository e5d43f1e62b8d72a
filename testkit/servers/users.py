"""Users of a server with `--auth`, and clients that sign for them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from msgspec.structs import replace

from partita.server.security.identities.access_control import WATCH_SECONDS
from partita.server.security.identities.access_file import FILE_NAME, AccessFile
from partita.server.security.identities.user_directory import (
    AccessKey,
    Directory,
    Role,
    add_user,
    new_id,
)
from testkit.servers.processes import Server

REGION, ACCOUNT = "us-east-1", "123456789012"
ADMINISTRATOR = "AdministratorAccess"
Document = dict[str, Any]


def statement(
    actions: str | list[str], resources: str | list[str] = "*", effect: str = "Allow", **more: Any
) -> Document:
    return {"Effect": effect, "Action": actions, "Resource": resources, **more}


def policy(*statements: Document) -> Document:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def table_arn(name: str) -> str:
    return f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name}"


class People:
    """The user directory of a running server, changed in the same way as by the commands."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self.file = AccessFile(self.path)
        self.server: Server | None = None
        self._count = 0

    def change(self, change: Callable[[Directory], Directory]) -> None:
        with self.file.changing() as changing:
            changing.directory = change(changing.directory)
        if self.server is not None:
            time.sleep(2.5 * WATCH_SECONDS)

    def add(self, *statements: Document, policies: Iterable[str] = ()) -> AccessKey:
        """Adds a user with these policies and statements, and returns a key of the user."""
        self._count += 1
        name = f"user{self._count}"
        keys: list[AccessKey] = []

        def with_user(directory: Directory) -> Directory:
            names = tuple(policies)
            if statements:
                names += (f"{name}-policy",)
                kept = {**directory.policies, f"{name}-policy": policy(*statements)}
                directory = replace(directory, policies=kept)
            directory, key = add_user(directory, name, time.time(), policies=names)
            keys.append(key)
            return directory

        self.change(with_user)
        return keys[0]

    def name_of(self, key: AccessKey) -> str:
        users = self.file.load().users.items()
        return next(name for name, user in users if key.id in [one.id for one in user.keys])

    def let(self, key: AccessKey, *statements: Document) -> None:
        """Replaces the policy of the user by these statements."""
        name = f"{self.name_of(key)}-policy"
        self.change(
            lambda directory: replace(
                directory, policies={**directory.policies, name: policy(*statements)}
            )
        )

    def add_role(self, name: str, trust: Document, *statements: Document) -> None:
        def with_role(directory: Directory) -> Directory:
            kept = {**directory.policies, f"{name}-policy": policy(*statements)}
            role = Role(new_id("AROA"), policy(trust), (f"{name}-policy",))
            return replace(directory, policies=kept, roles={**directory.roles, name: role})

        self.change(with_role)

    def client(self, key: Any, service: str = "dynamodb", **more: Any) -> Any:
        assert self.server is not None
        return client_for(self.server.url, key.id, key.secret, service, **more)


def client_for(
    url: str,
    key_id: str,
    secret: str,
    service: str = "dynamodb",
    token: str | None = None,
    **more: Any,
) -> Any:
    return boto3.client(
        service,
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id=key_id,
        aws_secret_access_key=secret,
        aws_session_token=token,
        config=Config(retries={"total_max_attempts": 1}, parameter_validation=False, **more),
    )


def refusal(call: Callable[..., Any], **request: Any) -> tuple[str, str]:
    """Returns the code and the message of the error that a call raises."""
    with pytest.raises(ClientError) as caught:
        call(**request)
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


def as_text(document: Document) -> str:
    return json.dumps(document)


TABLE: dict[str, Any] = {
    "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
}


def events(folder: Path, log: str = "audit") -> list[dict[str, Any]]:
    text = (folder / log / "audit.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]
