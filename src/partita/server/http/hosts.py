"""The names that a server answers to, against DNS rebinding.

A page may have the name of its own site lead to this machine: its requests are then of its own
origin to the browser, and only their Host gives them away. So a server that listens on nothing but
loopback addresses answers to names that cannot be led anywhere else, and to those it is given.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address

ALL = "*"
LOCAL = frozenset(
    (
        "localhost",
        # boto3 and the AWS CLI put this before the host for some operations of Step Functions.
        "sync-localhost",
        # How containers name the machine they run on; nobody can have such a name in public.
        "host.docker.internal",
        "gateway.docker.internal",
        "host.containers.internal",
        "host.minikube.internal",
        "host.lima.internal",
        "host.k3d.internal",
    )
)
UNSPECIFIED = frozenset(("0.0.0.0", "::"))
"""Some connect to these, and arrive at the machine that they are on."""
ALLOW_HOST = "start it with --allow-host {name}"


class Hosts:
    def __init__(self, allowed: Iterable[str] = (), remedy: str = ALLOW_HOST) -> None:
        """Once there are names, only they and the local ones count, wherever is listened."""
        self._allowed = frozenset(_name(text.strip()) for text in allowed)
        self._remedy = remedy
        # Until it is known what is listened on.
        self._are_checked = True

    def listen_on(self, addresses: Iterable[str]) -> None:
        is_local = all(_is_loopback(address) for address in addresses)
        self._are_checked = (is_local or bool(self._allowed)) and ALL not in self._allowed

    def allows(self, host: bytes | None) -> bool:
        """Whether a request with that Host is answered; browsers always send one."""
        if host is None or not self._are_checked:
            return True
        name = _name(host.decode("latin-1"))
        return (
            name in LOCAL
            or name in self._allowed
            or name.endswith(".localhost")
            or _is_loopback(name)
            or name in UNSPECIFIED
        )

    def refusal(self, host: bytes) -> str:
        name = _name(host.decode("latin-1"))
        remedy = self._remedy.format(name=name)
        return f"This server does not answer to the name {name!r}: ask for localhost, or {remedy}."


def _name(host: str) -> str:
    """Without its port, and an address of IPv6 without its brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name = host if host.count(":") > 1 else host.partition(":")[0]
    return name.lower().removesuffix(".")


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False
