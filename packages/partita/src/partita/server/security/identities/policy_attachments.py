"""Attaches policies to users, groups and roles, which are written as `user/NAME`."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from partita.errors import PartitaError
from partita.server.security.identities.user_directory import Directory, find_user

KINDS: Final = {"user": "users", "group": "groups", "role": "roles"}


def holders(directory: Directory, policy: str) -> list[str]:
    """Returns all users, groups and roles that have a policy, or have it as their boundary."""
    return [
        f"{kind}/{name}"
        for kind, members in KINDS.items()
        for name, holder in sorted(getattr(directory, members).items())
        if policy in (*holder.policies, getattr(holder, "boundary", None))
    ]


def attach(
    directory: Directory, policy: str, holder: str, *, is_boundary: bool = False
) -> Directory:
    kind, name, member = _holder(directory, holder)
    if is_boundary:
        if kind == "group":
            raise PartitaError("Only a user or a role can have a boundary, not a group.")
        member = replace(member, boundary=policy)
    else:
        member = replace(member, policies=tuple(dict.fromkeys((*member.policies, policy))))
    return _with(directory, kind, name, member)


def detach(directory: Directory, policy: str, holder: str) -> Directory:
    kind, name, member = _holder(directory, holder)
    is_boundary = getattr(member, "boundary", None) == policy
    if policy not in member.policies and not is_boundary:
        raise PartitaError(f"{name} does not have {policy}.")
    member = replace(member, policies=tuple(name for name in member.policies if name != policy))
    if is_boundary:
        member = replace(member, boundary=None)
    return _with(directory, kind, name, member)


def _with(directory: Directory, kind: str, name: str, holder: Any) -> Directory:
    members = KINDS[kind]
    return replace(directory, **{members: {**getattr(directory, members), name: holder}})


def _holder(directory: Directory, holder: str) -> tuple[str, str, Any]:
    kind, _, name = holder.partition("/")
    if kind not in KINDS:
        raise PartitaError(
            f"A policy belongs to user/NAME, group/NAME or role/NAME, not to {holder!r}."
        )
    if kind == "user":
        return kind, name, find_user(directory, name)
    member = getattr(directory, KINDS[kind]).get(name)
    if member is None:
        raise PartitaError(f"There is no {kind} {name}; `partita users list` shows all.")
    return kind, name, member
