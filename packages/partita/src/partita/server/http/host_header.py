"""The host names that a server answers to: a defense against DNS rebinding.

In a rebinding attack, the owner of a web site points its name at the address of this machine. To
the browser, requests of that site's pages are then same-origin, and only their Host header differs
from that of honest requests.

A server that only listens on loopback addresses answers to names that nobody can register in
public, and to names that the operator allows. A server that other machines can reach may have any
name. But a GET carries no Origin header, so it shows data only under names that are not public.
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
        # How containers name the machine that they run on. Nobody can register these names.
        "host.docker.internal",
        "gateway.docker.internal",
        "host.containers.internal",
        "host.minikube.internal",
        "host.lima.internal",
        "host.k3d.internal",
    )
)
PREFIX = "sync-"
"""boto3 and the AWS CLI prepend this to the host for some operations of Step Functions."""
UNSPECIFIED = frozenset(("0.0.0.0", "::"))
"""Connecting to these addresses reaches the client's own machine."""
PRIVATE = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".svc", ".corp", ".home")
"""Suffixes that public names cannot have."""
ALLOW_HOST = "start it with --allow-host {name}"
_HOST = re.compile(
    r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[^\[\]:@/]*))(?::\d*)?", re.IGNORECASE
)
_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]*")


class AllowedHosts:
    def __init__(self, allowed: Iterable[str] = (), remedy: str = ALLOW_HOST) -> None:
        """With `allowed` names, the server answers only to these, to local names and to addresses,
        whatever it listens on. `remedy` completes the text of a refusal."""
        self._allowed = frozenset(_allowed_name(text.strip()) for text in allowed)
        self._remedy = remedy
        # The strictest assumption, until `listen_on` is called.
        self._is_local = True
        self._are_checked = True

    def listen_on(self, addresses: Iterable[str]) -> None:
        self._is_local = all(_is_loopback(address) for address in addresses)
        self._are_checked = (self._is_local or bool(self._allowed)) and ALL not in self._allowed

    @property
    def is_local(self) -> bool:
        """True when the server listens on loopback addresses only."""
        return self._is_local

    def allows(self, host: bytes | None) -> bool:
        """True when a request with this Host is answered. Browsers always send a Host."""
        if host is None or not self._are_checked:
            return True
        name = _name(host.decode("latin-1"))
        return self._is_known(name) or self._is_known(name.removeprefix(PREFIX))

    def allows_data(self, host: bytes | None) -> bool:
        """True when data is shown to a GET with this Host."""
        if host is None or ALL in self._allowed:
            return True
        name = _name(host.decode("latin-1"))
        if self._are_checked:
            return self._is_known(name)
        # A public site cannot have an address or a name without a dot as its name.
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
    """Returns a host without its port and IPv6 brackets; a text that is not a host, as it is."""
    match = _HOST.fullmatch(host)
    name = host if match is None else match["address"] or match["name"]
    return name.lower().removesuffix(".")


def _address(name: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(name)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_local(host: str) -> bool:
    """True when a server that listens on this host can only be reached from this machine."""
    return host == "localhost" or _is_loopback(host)


def _is_loopback(name: str) -> bool:
    address = _address(name)
    return address is not None and address.is_loopback
