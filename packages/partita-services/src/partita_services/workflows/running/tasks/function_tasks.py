"""The functions that tasks call, over the Lambda API."""

from __future__ import annotations

import json
from typing import Any

from partita.client import Client, ClientError
from partita.client.lambda_invoke import invoke
from partita_services.workflows.language.language_errors import StateError
from partita_services.workflows.running.state_machine_arns import function_name


class TaskFunctions:
    """Functions of the Lambda API."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(
        self, resource: str, event: Any, *, is_event: bool = False, role: str = ""
    ) -> tuple[Any, str]:
        """The result of a function, and the version that was called. Raises StateError when it
        fails.

        With `is_event`, the call is asynchronous. `role` is the role whose rights count, where the
        server asks for any.
        """
        name = function_name(resource)
        if name is None:
            raise _unknown(resource)
        try:
            invoked = await invoke(
                self._client, name, json.dumps(event).encode(), is_event=is_event, role=role
            )
        except ClientError as error:
            if error.code == "ResourceNotFoundException":
                raise _unknown(resource) from error
            cause = f"{error.message} (Service: Lambda, Status Code: {error.status})"
            raise StateError(f"Lambda.{error.code}", cause) from error
        if is_event:
            return {}, invoked.version
        payload = json.loads(invoked.payload)
        if invoked.is_error:
            raise StateError(payload["errorType"], json.dumps(payload))
        return payload, invoked.version


def _unknown(resource: str) -> StateError:
    return StateError(
        "Lambda.ResourceNotFoundException",
        f"Function not found: {resource} (Service: Lambda, Status Code: 404)",
    )
