"""The API behind the console's page for users, keys, policies and the audit log.

Its targets begin with PartitaAccess. Changes go to the file in the data folder, like those of
`partita users` and `partita policies`; the server then reads the file again. The secret of a key is
only in the response to the request that created the key.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from time import time
from typing import Any, Final

import msgspec
import orjson
from msgspec.structs import replace

from partita.errors import DynamoDBError, PartitaError, UnknownOperationException
from partita.errors import ValidationException as Invalid
from partita.server.admission import Forwarded
from partita.server.dispatch import error_response
from partita.server.http.http_messages import HttpResponse, Reply
from partita.server.protocol.aws_responses import JSON_1_0
from partita.server.security.administration.policy_simulation import explained, simulated_caller
from partita.server.security.audit.audit_reading import latest
from partita.server.security.identities.access_control import AccessControl
from partita.server.security.identities.callers import Callers
from partita.server.security.identities.policy_attachments import attach, detach, holders
from partita.server.security.identities.user_directory import (
    ROOT,
    AccessKey,
    Directory,
    User,
    add_key,
    add_user,
    check_name,
    find_user,
    set_status,
)
from partita.server.security.policies.managed_policies import DOCUMENTS, document_of
from partita.server.security.policies.policy_documents import PolicyError, parse

TARGET: Final = b"PartitaAccess"
EVENTS_MAX: Final = 200

Answer = dict[str, Any]


class AdministrationRequest(msgspec.Struct, frozen=True):
    """The parameters of all operations. Each operation uses some of them."""

    UserName: str = ""
    AccessKeyId: str = ""
    PolicyName: str = ""
    Document: str = ""
    Holder: str = ""
    """`user/NAME`, `group/NAME` or `role/NAME`."""
    IsActive: bool = True
    Policies: tuple[str, ...] = ()
    Groups: tuple[str, ...] = ()
    Action: str = ""
    Resource: str = "*"
    Before: int | None = None
    """The number of an event; only older ones are listed."""
    Text: str = ""
    """Only events that contain this text are listed."""


class Administration:
    """Answers requests that the gate has authorized. To the dispatcher it is a companion."""

    def __init__(self, access: AccessControl, audit: Path | None) -> None:
        self._access = access
        self._audit = audit

    def forward(self, forwarded: Forwarded, reply: Reply) -> None:
        try:
            answering = _OPERATIONS.get(forwarded.operation.decode("latin-1"))
            if answering is None:
                raise UnknownOperationException
            request = msgspec.json.decode(forwarded.body or b"{}", type=AdministrationRequest)
            response = HttpResponse(200, orjson.dumps(answering(self, request)), JSON_1_0)
        except DynamoDBError as error:
            response = error_response(error, JSON_1_0)
        except (PartitaError, msgspec.MsgspecError) as error:
            response = error_response(Invalid(str(error)), JSON_1_0)
        reply(response)

    # Reading

    def list_users(self, request: AdministrationRequest) -> Answer:
        directory = self._directory()
        return {
            "Users": [_user(name, user) for name, user in sorted(directory.users.items())],
            "Groups": [
                {"GroupName": name, "Policies": group.policies}
                for name, group in sorted(directory.groups.items())
            ],
            "Roles": [
                {"RoleName": name, "Policies": role.policies, "Trust": role.trust}
                for name, role in sorted(directory.roles.items())
            ],
            "Policies": [
                {
                    "PolicyName": name,
                    "Document": directory.policies.get(name) or document_of(name),
                    "IsManaged": name in DOCUMENTS,
                    "Holders": holders(directory, name),
                }
                for name in sorted({*directory.policies, *DOCUMENTS})
            ],
            "CanChange": self._access.is_changeable,
        }

    def explain(self, request: AdministrationRequest) -> Answer:
        caller = simulated_caller(self._directory(), request.UserName)
        return {"Lines": list(explained(caller, request.Action, request.Resource, {}))}

    def list_events(self, request: AdministrationRequest) -> Answer:
        if self._audit is None:
            raise Invalid("A database in memory has no audit log, unless --audit names its folder.")
        page = latest(self._audit, EVENTS_MAX, request.Before, request.Text)
        return {"Events": page.events, "Before": page.before}

    def _directory(self) -> Directory:
        """Returns the directory as it is in the file now, which may be newer than the server's."""
        file = self._access.file
        if file is None or not file.is_own:
            return self._access.callers.directory
        directory = file.load()
        root = self._access.callers.directory.users.get(ROOT)
        if root is None:
            return directory
        return replace(directory, users={**directory.users, ROOT: root})

    # Changing

    def _change(self, change: Callable[[Directory], Directory]) -> None:
        file = self._access.file
        if file is None or not file.is_own:
            raise Invalid(
                "The operator provides the users of this server in a file: change them there."
            )
        with file.changing() as changing:
            changing.directory = change(changing.directory)

    def create_user(self, request: AdministrationRequest) -> Answer:
        made: list[AccessKey] = []

        def change(directory: Directory) -> Directory:
            directory, key = add_user(
                directory, request.UserName, time(), request.Groups, request.Policies
            )
            made.append(key)
            return directory

        self._change(change)
        return _shown_once(made[0])

    def delete_user(self, request: AdministrationRequest) -> Answer:
        def change(directory: Directory) -> Directory:
            find_user(directory, request.UserName)
            kept = {
                name: user for name, user in directory.users.items() if name != request.UserName
            }
            return replace(directory, users=kept)

        self._change(change)
        return {}

    def create_access_key(self, request: AdministrationRequest) -> Answer:
        made: list[AccessKey] = []

        def change(directory: Directory) -> Directory:
            directory, key = add_key(directory, request.UserName, time())
            made.append(key)
            return directory

        self._change(change)
        return _shown_once(made[0])

    def update_user(self, request: AdministrationRequest) -> Answer:
        self._change(
            lambda directory: set_status(
                directory, request.UserName, None, is_active=request.IsActive
            )
        )
        return {}

    def update_access_key(self, request: AdministrationRequest) -> Answer:
        self._change(
            lambda directory: set_status(
                directory, request.UserName, request.AccessKeyId, is_active=request.IsActive
            )
        )
        return {}

    def put_policy(self, request: AdministrationRequest) -> Answer:
        check_name(request.PolicyName)
        if request.PolicyName in DOCUMENTS:
            raise Invalid(f"{request.PolicyName} is a managed policy and cannot be changed.")
        try:
            parse(request.Document, request.PolicyName)
        except PolicyError as error:
            raise Invalid(str(error)) from error
        document = json.loads(request.Document)
        self._change(
            lambda directory: replace(
                directory, policies={**directory.policies, request.PolicyName: document}
            )
        )
        return {}

    def delete_policy(self, request: AdministrationRequest) -> Answer:
        def change(directory: Directory) -> Directory:
            if request.PolicyName not in directory.policies:
                raise Invalid(f"There is no policy {request.PolicyName}.")
            used = holders(directory, request.PolicyName)
            if used:
                raise Invalid(
                    f"{request.PolicyName} is in use by {', '.join(used)}: detach it first."
                )
            kept = {
                name: document
                for name, document in directory.policies.items()
                if name != request.PolicyName
            }
            return replace(directory, policies=kept)

        self._change(change)
        return {}

    def attach_policy(self, request: AdministrationRequest) -> Answer:
        def change(directory: Directory) -> Directory:
            Callers(directory).policy(request.PolicyName)
            return attach(directory, request.PolicyName, request.Holder)

        self._change(change)
        return {}

    def detach_policy(self, request: AdministrationRequest) -> Answer:
        self._change(lambda directory: detach(directory, request.PolicyName, request.Holder))
        return {}


_OPERATIONS: Final[dict[str, Callable[[Administration, AdministrationRequest], Answer]]] = {
    "ListUsers": Administration.list_users,
    "ExplainDecision": Administration.explain,
    "ListEvents": Administration.list_events,
    "CreateUser": Administration.create_user,
    "DeleteUser": Administration.delete_user,
    "UpdateUser": Administration.update_user,
    "CreateAccessKey": Administration.create_access_key,
    "UpdateAccessKey": Administration.update_access_key,
    "PutPolicy": Administration.put_policy,
    "DeletePolicy": Administration.delete_policy,
    "AttachPolicy": Administration.attach_policy,
    "DetachPolicy": Administration.detach_policy,
}


def _user(name: str, user: User) -> Answer:
    return {
        "UserName": name,
        "UserId": user.id,
        "CreatedAt": user.created_at,
        "IsDisabled": user.is_disabled,
        "Groups": user.groups,
        "Policies": user.policies,
        "Boundary": user.boundary,
        "Keys": [
            {"AccessKeyId": key.id, "Status": key.status, "CreatedAt": key.created_at}
            for key in user.keys
        ],
    }


def _shown_once(key: AccessKey) -> Answer:
    return {"AccessKeyId": key.id, "SecretAccessKey": key.secret}
