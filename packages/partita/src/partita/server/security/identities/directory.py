"""Users with their keys, groups, roles and policies: what `partita users` and `policies` keep.

All of it is one JSON file, replaced as a whole, so a server that reads it never sees half a change.
Secrets are in it as they are, for a signature cannot be verified with less, and the file is of mode
0600; where there is an encryption key, they are sealed.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import stat
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from partita.errors import PartitaError

FILE_NAME: Final = "access.json"
ACCOUNT_ID: Final = "123456789012"
KEYS_PER_USER_MAX: Final = 2
ACTIVE, INACTIVE = "Active", "Inactive"
SESSION_SECONDS_MIN, SESSION_SECONDS_MAX = 900, 43_200
SEALED: Final = "sealed:"
"""What a secret begins with that is encrypted; no other has a colon."""
SECRETS, SESSIONS = "users", "sessions"
ROOT: Final = "root"
ROOT_KEY_ID = "PARTITA_ROOT_ACCESS_KEY_ID"
ROOT_SECRET = "PARTITA_ROOT_SECRET_ACCESS_KEY"
"""A key for everything, for containers that are given secrets by their environment."""

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
    """The policy that bounds what the others can allow."""
    is_disabled: bool = False

    @property
    def active_keys(self) -> list[AccessKey]:
        return [key for key in self.keys if key.status == ACTIVE and not self.is_disabled]


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    policies: tuple[str, ...] = ()


class Role(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    trust: dict[str, Any]
    """The policy that says who may assume it."""
    policies: tuple[str, ...] = ()
    boundary: str | None = None
    session_seconds_max: int = 3600
    created_at: float = 0.0


class Directory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file."""

    session_key: str = ""
    """What session tokens are sealed with."""
    users: dict[str, User] = {}
    groups: dict[str, Group] = {}
    roles: dict[str, Role] = {}
    policies: dict[str, dict[str, Any]] = {}


def load(path: Path, *, is_own: bool = True) -> Directory:
    """The directory of a file; an empty one where there is none. A file of our own must be for the
    eyes of its owner only."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if is_own and mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise PartitaError(
                    f"{path} has secrets in it and can be read by others: run chmod 600 {path}."
                )
            return msgspec.json.decode(file.read(), type=Directory)
    except FileNotFoundError:
        return Directory()
    except OSError as error:
        raise PartitaError(f"Cannot read {path}: {error.strerror}.") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise PartitaError(f"{path} is not a file of users: {error}.") from error


@contextmanager
def changing(path: Path) -> Iterator[Callable[[Directory], None]]:
    """Inside, nobody else changes the file: `with changing(path) as save: save(changed(load()))`"""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise PartitaError(f"Cannot write to {path.parent}: {error.strerror}.") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lambda directory: _save(path, directory)
    finally:
        os.close(lock)


def _save(path: Path, directory: Directory) -> None:
    directory = with_session_key(directory)
    new = path.with_suffix(f".{os.getpid()}.new")
    content = msgspec.json.format(msgspec.json.encode(directory), indent=2) + b"\n"
    try:
        with open(os.open(new, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise PartitaError(f"Cannot write {path}: {error.strerror}.") from error


def with_session_key(directory: Directory) -> Directory:
    if directory.session_key:
        return directory
    return msgspec.structs.replace(directory, session_key=new_secret())


def with_root(directory: Directory, environment: Mapping[str, str] = os.environ) -> Directory:
    """The directory with the key that the environment gives, if it does."""
    key_id, secret = environment.get(ROOT_KEY_ID), environment.get(ROOT_SECRET)
    if not key_id and not secret:
        return directory
    if not key_id or not secret:
        raise PartitaError(f"Set both {ROOT_KEY_ID} and {ROOT_SECRET}, or neither.")
    if not _KEY_ID.fullmatch(key_id):
        raise PartitaError(f"{ROOT_KEY_ID} has 4 to 128 letters and digits.")
    root = User(id=ACCOUNT_ID, keys=(AccessKey(key_id, secret),))
    return msgspec.structs.replace(directory, users={**directory.users, ROOT: root})


# Secrets that are sealed


class Wrapping(Protocol):
    """A keyring, as far as it is needed here."""

    def wrap(self, name: str, content: bytes, context: bytes) -> bytes: ...

    def unwrap(self, name: str, sealed: bytes, context: bytes) -> bytes: ...


def sealed(directory: Directory, keyring: Wrapping) -> Directory:
    """With all secrets sealed, each for its own key."""

    def seal(secret: str, context: str) -> str:
        if not secret or secret.startswith(SEALED):
            return secret
        wrapped = keyring.wrap(SECRETS, secret.encode(), context.encode())
        return SEALED + b64encode(wrapped).decode()

    return _with_secrets(directory, seal)


def unsealed(directory: Directory, keyring: Wrapping | None, path: Path) -> Directory:
    """With all secrets as they are."""

    def unseal(secret: str, context: str) -> str:
        if not secret.startswith(SEALED):
            return secret
        if keyring is None:
            raise PartitaError(f"The secrets in {path} are encrypted: give --encryption-key.")
        try:
            wrapped = b64decode(secret.removeprefix(SEALED), validate=True)
            return keyring.unwrap(SECRETS, wrapped, context.encode()).decode()
        except (PartitaError, ValueError):
            raise PartitaError(
                f"The secret of {context} in {path} was changed, or encrypted under another key."
            ) from None

    return _with_secrets(directory, unseal)


def _with_secrets(directory: Directory, changed: Callable[[str, str], str]) -> Directory:
    users = {
        name: msgspec.structs.replace(
            user,
            keys=tuple(
                msgspec.structs.replace(key, secret=changed(key.secret, key.id))
                for key in user.keys
            ),
        )
        for name, user in directory.users.items()
    }
    session_key = changed(directory.session_key, SESSIONS)
    return msgspec.structs.replace(directory, users=users, session_key=session_key)


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
    """A further key; an inactive one makes room for it."""
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
    """Of one key, or of the user with all of them."""
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
    """40 characters, as AWS's have."""
    return b64encode(secrets.token_bytes(30)).decode()
