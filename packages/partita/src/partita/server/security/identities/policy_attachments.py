"""Who has which policy: users, groups and roles, written as `user/NAME`."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from partita.errors import PartitaError
from partita.server.security.identities.user_directory import Directory, find_user

KINDS: Final = {"user": "users", "group": "groups", "role": "roles"}


def holders(directory: Directory, policy: str) -> list[str]:
    """Everybody who has a policy, or is bounded by it."""
    return [
        f"{kind}/{name}"
        for kind, members in KINDS.items()
        for name, holder in sorted(getattr(directory, members).items())
        if policy in (*holder.policies, getattr(holder, "boundary", None))
    ]


def attach(
    directory: Directory, policy: str, holder: str, *, is_boundary: bool = False
) -> Directory:
    kind, name, found = _holder(directory, holder)
    if is_boundary:
        if kind == "group":
            raise PartitaError("A boundary is of a user or a role, not of a group.")
        found = replace(found, boundary=policy)
    else:
        found = replace(found, policies=tuple(dict.fromkeys((*found.policies, policy))))
    return _with(directory, kind, name, found)


def detach(directory: Directory, policy: str, holder: str) -> Directory:
    kind, name, found = _holder(directory, holder)
    is_boundary = getattr(found, "boundary", None) == policy
    if policy not in found.policies and not is_boundary:
        raise PartitaError(f"{name} does not have {policy}.")
    found = replace(found, policies=tuple(one for one in found.policies if one != policy))
    if is_boundary:
        found = replace(found, boundary=None)
    return _with(directory, kind, name, found)


def _with(directory: Directory, kind: str, name: str, holder: Any) -> Directory:
    members = KINDS[kind]
    return replace(directory, **{members: {**getattr(directory, members), name: holder}})


def _holder(directory: Directory, holder: str) -> tuple[str, str, Any]:
    kind, _, name = holder.partition("/")
    if kind not in KINDS:
        raise PartitaError(f"A policy is of user/NAME, group/NAME or role/NAME, not of {holder!r}.")
    if kind == "user":
        return kind, name, find_user(directory, name)
    found = getattr(directory, KINDS[kind]).get(name)
    if found is None:
        raise PartitaError(f"There is no {kind} {name}; `partita users list` shows all.")
    return kind, name, found
