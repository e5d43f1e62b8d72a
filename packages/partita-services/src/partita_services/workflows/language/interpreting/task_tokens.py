"""Task tokens: each identifies the task and the execution for which an outside worker answers."""

from __future__ import annotations

import base64
import binascii
import random

from partita_services.workflows.language.json_values import json_text, parse_json


def make_token(execution_arn: str, task_id: str, chance: random.Random) -> str:
    secret = f"{chance.getrandbits(128):032x}"
    return base64.urlsafe_b64encode(json_text([execution_arn, task_id, secret]).encode()).decode()


def task_of_token(token: str) -> tuple[str, str] | None:
    """The execution and the id of its task in a token; None for an invalid token.

    The caller must compare the whole token with that of the task: everything but the secret in it
    can be guessed.
    """
    try:
        parts = parse_json(base64.urlsafe_b64decode(token))
    except (binascii.Error, ValueError):
        return None
    match parts:
        case [str(execution_arn), str(task_id), str()]:
            return execution_arn, task_id
    return None
