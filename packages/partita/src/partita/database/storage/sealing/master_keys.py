"""The server's own keys, from a file, the environment or a command, but never from the data folder.

A key is 32 random bytes in base64 or hexadecimal; `partita keys new` prints one. If there are
several, the first one encrypts and the others only decrypt: keys are rotated with a new first one.
"""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Final

from partita.database.storage.sealing.cipher import KEY_BYTES, new_key
from partita.errors import PartitaError

FILE, ENVIRONMENT, COMMAND = "file", "env", "command"
HOW: Final = "give --encryption-key file:PATH, env:NAME or command:LINE"
COMMAND_SECONDS_MAX: Final = 60
FINGERPRINT_BYTES: Final = 8


class KeySource:
    """The source of the keys: `file:PATH`, `env:NAME` or `command:LINE`."""

    def __init__(self, text: str, environment: Mapping[str, str] = os.environ) -> None:
        kind, colon, name = text.partition(":")
        if not colon or not name or kind not in (FILE, ENVIRONMENT, COMMAND):
            # The text may be the key itself, so the message must not contain it.
            raise PartitaError(f"The encryption key cannot be found: {HOW}.")
        self.kind = kind
        self.name = name
        self._environment = environment

    @property
    def path(self) -> Path | None:
        """The key file, which can be watched for new keys; None for other sources."""
        return Path(self.name) if self.kind == FILE else None

    def read(self) -> list[bytes]:
        """Returns all keys; the first one encrypts."""
        words = self._text().split()
        if not words:
            raise PartitaError(f"There is no key in {self}: `partita keys new` prints one.")
        return [self._parse(word) for word in words]

    def __str__(self) -> str:
        return {
            FILE: f"the file {self.name}",
            ENVIRONMENT: f"the environment's {self.name}",
            COMMAND: "the output of the command",
        }[self.kind]

    def _text(self) -> str:
        if self.kind == ENVIRONMENT:
            return self._environment.get(self.name, "")
        try:
            if self.kind == FILE:
                with open(self.name, encoding="ascii") as file:
                    _check_mode(self.name, file.fileno())
                    return file.read()
            return _output(self.name)
        except UnicodeDecodeError:
            raise self._not_a_key() from None
        except OSError as error:
            raise PartitaError(
                f"The encryption key cannot be read from {self}: {error.strerror}."
            ) from None

    def _parse(self, word: str) -> bytes:
        try:
            key = bytes.fromhex(word) if len(word) == 2 * KEY_BYTES else b64decode(word, None, True)
        except (ValueError, NotBase64):
            raise self._not_a_key() from None
        if len(key) != KEY_BYTES:
            raise self._not_a_key()
        return key

    def _not_a_key(self) -> PartitaError:
        return PartitaError(
            f"A key in {self} is not {KEY_BYTES} bytes in base64 or hexadecimal: "
            "`partita keys new` prints a valid one."
        )


def _check_mode(name: str, file: int) -> None:
    """Refuses a key file that other users can read, if this user could change its mode.

    A mounted secret (read-only, or owned by another user) is left to whoever mounts it.
    """
    status = os.fstat(file)
    is_open = status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    is_mounted = os.fstatvfs(file).f_flag & os.ST_RDONLY
    if is_open and status.st_uid == os.geteuid() and not is_mounted:
        raise PartitaError(
            f"The encryption key in {name} can be read by other users: run chmod 600 {name}."
        )


def _output(line: str) -> str:
    try:
        result = subprocess.run(
            shlex.split(line),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=COMMAND_SECONDS_MAX,
            check=True,
        )
    except (subprocess.SubprocessError, ValueError) as error:
        reason = type(error).__name__
        if isinstance(error, subprocess.CalledProcessError):
            reason = f"it ended with {error.returncode}"
        elif isinstance(error, subprocess.TimeoutExpired):
            reason = f"it took more than {COMMAND_SECONDS_MAX} seconds"
        raise PartitaError(f"The command for the encryption key failed: {reason}.") from None
    return result.stdout.decode("ascii")


def print_key(key: bytes) -> str:
    return b64encode(key).decode()


def new_printed_key() -> str:
    return print_key(new_key())


def fingerprint(key: bytes) -> str:
    """A name for a key that reveals nothing about it."""
    return blake2b(key, digest_size=FINGERPRINT_BYTES, person=b"partita-key-id").hexdigest()
