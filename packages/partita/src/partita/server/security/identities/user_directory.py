"""The directory of users with their keys, groups, roles and policies.

It contains the secrets themselves, because a signature cannot be verified with a hash of one.
`access_file.py` stores a directory in a file; `partita users` and `partita policies` change it.
"""

from __future__ import annotations

import os
import re
import secrets
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from partita.errors import PartitaError

ACCOUNT_ID: Final = "123456789012"
KEYS_PER_USER_MAX: Final = 2
ACTIVE, INACTIVE = "Active", "Inactive"
SESSION_SECONDS_MIN, SESSION_SECONDS_MAX = 900, 43_200
ROOT: Final = "root"
ROOT_KEY_ID = "PARTITA_ROOT_ACCESS_KEY_ID"
ROOT_SECRET = "PARTITA_ROOT_SECRET_ACCESS_KEY"
"""Environment variables with a key of the root user, who may do everything that is not denied. They
are for containers, which get their secrets from the environment."""

_NAME: Final = re.compile(r"[\w+=,.@-]{1,64}", re.ASCII)
_KEY_ID: Final = re.compile(r"\w{4,128}", re.ASCII)
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


class AccessKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    secret: str
    created_at: float = 0.0
    status: str = ACTIVE

    def __repr__(self) -> str:
        return f"AccessKey({self.id!r}, ...)"


class User(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    created_at: float = 0.0
    keys: tuple[AccessKey, ...] = ()
    groups: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    boundary: str | None = None
    """The permissions boundary: a policy that limits what the others can allow."""
    is_disabled: bool = False

    @property
    def active_keys(self) -> list[AccessKey]:
        return [key for key in self.keys if key.status == ACTIVE and not self.is_disabled]


class UserGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    policies: tuple[str, ...] = ()


class Role(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    trust: dict[str, Any]
    """The trust policy, which says who may assume the role."""
    policies: tuple[str, ...] = ()
    boundary: str | None = None
    session_seconds_max: int = 3600
    created_at: float = 0.0


class Directory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All users, groups, roles and policies of a server: the content of the file."""

    session_key: str = ""
    """The key that session tokens are sealed with."""
    users: dict[str, User] = {}
    groups: dict[str, UserGroup] = {}
    roles: dict[str, Role] = {}
    policies: dict[str, dict[str, Any]] = {}


def with_session_key(directory: Directory) -> Directory:
    if directory.session_key:
        return directory
    return msgspec.structs.replace(directory, session_key=new_secret())


def with_root(directory: Directory, environment: Mapping[str, str] = os.environ) -> Directory:
    """Returns the directory with the root key of the environment, if there is one."""
    key_id, secret = environment.get(ROOT_KEY_ID), environment.get(ROOT_SECRET)
    if not key_id and not secret:
        return directory
    if not key_id or not secret:
        raise PartitaError(f"Set both {ROOT_KEY_ID} and {ROOT_SECRET}, or neither.")
    if not _KEY_ID.fullmatch(key_id):
        raise PartitaError(f"{ROOT_KEY_ID} has 4 to 128 letters and digits.")
    root = User(id=ACCOUNT_ID, keys=(AccessKey(key_id, secret),))
    return msgspec.structs.replace(directory, users={**directory.users, ROOT: root})


# Changes: functions from a directory to a directory.


def with_user(directory: Directory, name: str, user: User) -> Directory:
    return msgspec.structs.replace(directory, users={**directory.users, name: user})


def add_user(
    directory: Directory,
    name: str,
    now: float,
    groups: tuple[str, ...] = (),
    policies: tuple[str, ...] = (),
) -> tuple[Directory, AccessKey]:
    check_name(name)
    if name in directory.users or name == ROOT:
        raise PartitaError(f"There is a user {name} already.")
    for group in groups:
        if group not in directory.groups:
            raise PartitaError(f"There is no group {group}: add it with `partita users group`.")
    key = new_key(now)
    user = User(new_id("AIDA"), now, (key,), groups, policies)
    return with_user(directory, name, user), key


def add_key(directory: Directory, name: str, now: float) -> tuple[Directory, AccessKey]:
    """Adds a key to a user. It replaces inactive keys; two active ones are the limit."""
    user = find_user(directory, name)
    kept = tuple(key for key in user.keys if key.status == ACTIVE)
    if len(kept) >= KEYS_PER_USER_MAX:
        ids = " and ".join(key.id for key in kept)
        raise PartitaError(
            f"{name} has two active keys, {ids}: disable one with `partita users disable {name} "
            "--key ID`."
        )
    key = new_key(now)
    return with_user(directory, name, msgspec.structs.replace(user, keys=(*kept, key))), key


def set_status(
    directory: Directory, name: str, key_id: str | None, *, is_active: bool
) -> Directory:
    """Enables or disables one key, or the user with all keys if `key_id` is None."""
    user = find_user(directory, name)
    if key_id is None:
        changed = msgspec.structs.replace(user, is_disabled=not is_active)
        return with_user(directory, name, changed)
    if key_id not in [key.id for key in user.keys]:
        raise PartitaError(f"{name} has no key {key_id}.")
    status = ACTIVE if is_active else INACTIVE
    keys = tuple(
        msgspec.structs.replace(key, status=status) if key.id == key_id else key
        for key in user.keys
    )
    return with_user(directory, name, msgspec.structs.replace(user, keys=keys))


def find_user(directory: Directory, name: str) -> User:
    user = directory.users.get(name)
    if user is None:
        raise PartitaError(f"There is no user {name}; `partita users list` shows all.")
    return user


def check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise PartitaError(f"{name!r} is not a name: use up to 64 letters, digits and +=,.@_-.")


def new_key(now: float) -> AccessKey:
    return AccessKey(new_id("AKIA"), new_secret(), now)


def new_id(prefix: str, letters: int = 16) -> str:
    return prefix + "".join(secrets.choice(_LETTERS) for _ in range(letters))


def new_secret() -> str:
    """Returns a random secret of 40 characters, like AWS's."""
    return b64encode(secrets.token_bytes(30)).decode()
