"""The names that a server answers to, against DNS rebinding.

A page may have the name of its own site lead to this machine: its requests are then of its own
origin to the browser, and only their Host gives them away. So a server that listens on nothing but
loopback addresses answers to names that cannot be led anywhere else, and to those it is given. One
that others reach may have any name; what it shows of its data to a GET, which tells no origin, it
does not show under a name of a public site.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address

from partita.errors import PartitaError

ALL = "*"
LOCAL = frozenset(
    (
        "localhost",
        # How containers name the machine they run on; nobody can have such a name in public.
        "host.docker.internal",
        "gateway.docker.internal",
        "host.containers.internal",
        "host.minikube.internal",
        "host.lima.internal",
        "host.k3d.internal",
    )
)
PREFIX = "sync-"
"""boto3 and the AWS CLI put this before the host for some operations of Step Functions."""
UNSPECIFIED = frozenset(("0.0.0.0", "::"))
"""Some connect to these, and arrive at the machine that they are on."""
PRIVATE = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".svc", ".corp", ".home")
"""Endings that no public name has."""
ALLOW_HOST = "start it with --allow-host {name}"
_HOST = re.compile(
    r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[^\[\]:@/]*))(?::\d*)?", re.IGNORECASE
)
_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]*")


class Hosts:
    def __init__(self, allowed: Iterable[str] = (), remedy: str = ALLOW_HOST) -> None:
        """Once there are names, only they, the local ones and addresses count, wherever is
        listened."""
        self._allowed = frozenset(_allowed_name(text.strip()) for text in allowed)
        self._remedy = remedy
        # Until it is known what is listened on.
        self._is_local = True
        self._are_checked = True

    def listen_on(self, addresses: Iterable[str]) -> None:
        self._is_local = all(_is_loopback(address) for address in addresses)
        self._are_checked = (self._is_local or bool(self._allowed)) and ALL not in self._allowed

    @property
    def is_local(self) -> bool:
        """Whether nothing but loopback addresses is listened on."""
        return self._is_local

    def allows(self, host: bytes | None) -> bool:
        """Whether a request with that Host is answered; browsers always send one."""
        if host is None or not self._are_checked:
            return True
        name = _name(host.decode("latin-1"))
        return self._is_known(name) or self._is_known(name.removeprefix(PREFIX))

    def allows_data(self, host: bytes | None) -> bool:
        """Whether data is shown to a GET with that Host."""
        if host is None or ALL in self._allowed:
            return True
        name = _name(host.decode("latin-1"))
        if self._are_checked:
            return self._is_known(name)
        # An address, or a name without a dot, is of no other site.
        return "." not in name or name.endswith(PRIVATE) or _address(name) is not None

    def _is_known(self, name: str) -> bool:
        return (
            name in LOCAL
            or name in self._allowed
            or name.endswith(".localhost")
            or _is_loopback(name)
            or name in UNSPECIFIED
            or (not self._is_local and _address(name) is not None)
        )

    def refusal(self, host: bytes) -> str:
        name = _name(host.decode("latin-1"))
        remedy = self._remedy.format(name=name)
        return f"This server does not answer to the name {name!r}: ask for localhost, or {remedy}."


def _allowed_name(text: str) -> str:
    name = _name(text)
    if name == ALL or _NAME.fullmatch(name) or _address(name) is not None:
        return name
    raise PartitaError(
        f"{text!r} is not a host: give a name such as db.example, an address, or * for all."
    )


def _name(host: str) -> str:
    """Without its port, and an address of IPv6 without its brackets; all of what is no host."""
    found = _HOST.fullmatch(host)
    name = host if found is None else found["address"] or found["name"]
    return name.lower().removesuffix(".")


def _address(name: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(name)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_local(host: str) -> bool:
    """Whether what listens there can be reached from this machine only."""
    return host == "localhost" or _is_loopback(host)


def _is_loopback(name: str) -> bool:
    address = _address(name)
    return address is not None and address.is_loopback
