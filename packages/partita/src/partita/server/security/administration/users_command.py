"""`partita users`: manages users with their keys, groups and roles."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from time import time

import click
from msgspec.structs import replace

from partita.errors import PartitaError
from partita.server.security.administration.access_options import access_options
from partita.server.security.identities.access_file import CHANGE_MAX, AccessFile
from partita.server.security.identities.user_directory import (
    SESSION_SECONDS_MAX,
    AccessKey,
    Directory,
    Role,
    User,
    UserGroup,
    add_key,
    add_user,
    check_name,
    find_user,
    new_id,
    set_status,
    with_user,
)
from partita.server.security.policies.policy_documents import TRUST, PolicyError, parse


@click.group()
def users() -> None:
    """Users, groups and roles of a data folder. A running server applies each change at once."""


@users.command()
@click.argument("name")
@click.option("--group", "groups", multiple=True, help="A group that the user joins.")
@click.option("--policy", "policies", multiple=True, help="A policy that the user gets.")
@access_options
def add(
    name: str,
    groups: tuple[str, ...],
    policies: tuple[str, ...],
    access: AccessFile,
) -> None:
    """Add the user NAME, and print the access key."""
    with access.changing() as change:
        change.directory, key = add_user(change.directory, name, time(), groups, policies)
    _show(key, access)
    if not groups and not policies:
        click.echo(
            f"{name} has no rights yet: `partita policies attach POLICY --user {name}`.", err=True
        )


@users.command("list")
@access_options
def list_users(access: AccessFile) -> None:
    """Show users with their keys, groups and policies, then groups and roles."""
    _list(access.load())


@users.command()
@click.option(
    "--above",
    type=click.IntRange(0, CHANGE_MAX),
    default=0,
    help="The number of the change that a server reports as accepted.",
)
@access_options
def accept(above: int, access: AccessFile) -> None:
    """Accept the users of an encrypted folder as they are, and show them.

    A server refuses a file of users that is older than the accepted one, or missing. Use this if
    you have put back an older file yourself, or have lost the file. Check what is shown: users that
    were disabled meanwhile may be back.
    """
    _list(access.accept(above))


def _list(directory: Directory) -> None:
    for name, user in sorted(directory.users.items()):
        state = " (disabled)" if user.is_disabled else ""
        click.echo(f"user {name}{state}{_attached(user)}")
        for key in user.keys:
            click.echo(f"  {key.id}  {key.status:<8}  {_day(key.created_at)}")
    for name, group in sorted(directory.groups.items()):
        click.echo(f"group {name}{_listed('policies', group.policies)}")
    for name, role in sorted(directory.roles.items()):
        click.echo(f"role {name}{_listed('policies', role.policies)}")


@users.command()
@click.argument("name")
@access_options
def rotate(name: str, access: AccessFile) -> None:
    """Give the user NAME a second key. The first stays valid until it is disabled."""
    with access.changing() as change:
        change.directory, key = add_key(change.directory, name, time())
    _show(key, access)
    old = [
        other.id for other in find_user(change.directory, name).active_keys if other.id != key.id
    ]
    for key_id in old:
        click.echo(
            f"When nobody uses the old key any more: `partita users disable {name} --key {key_id}`."
        )


@users.command()
@click.argument("name")
@click.option("--key", help="Only this key; without it, the user with all keys and sessions.")
@access_options
def disable(name: str, key: str | None, access: AccessFile) -> None:
    """Disable the user NAME or one of its keys, from the next request on."""
    with access.changing() as change:
        change.directory = set_status(change.directory, name, key, is_active=False)
    click.echo(f"{key or name} is disabled.")


@users.command()
@click.argument("name")
@click.option("--key", help="Only this key.")
@access_options
def enable(name: str, key: str | None, access: AccessFile) -> None:
    """Undo `disable`."""
    with access.changing() as change:
        change.directory = set_status(change.directory, name, key, is_active=True)
    click.echo(f"{key or name} is enabled.")


@users.command()
@click.argument("name")
@access_options
def remove(name: str, access: AccessFile) -> None:
    """Remove the user NAME with all keys."""
    with access.changing() as change:
        find_user(change.directory, name)
        kept = {other: user for other, user in change.directory.users.items() if other != name}
        change.directory = replace(change.directory, users=kept)
    click.echo(f"{name} is removed.")


@users.command()
@click.argument("name")
@click.option("--user", "members", multiple=True, help="A user who joins the group.")
@click.option("--policy", "policies", multiple=True, help="A policy that its members get.")
@access_options
def group(
    name: str, members: tuple[str, ...], policies: tuple[str, ...], access: AccessFile
) -> None:
    """Add the group NAME, or users and policies to it."""
    check_name(name)
    with access.changing() as change:
        directory = change.directory
        former = directory.groups.get(name, UserGroup())
        all_policies = tuple(dict.fromkeys((*former.policies, *policies)))
        directory = replace(directory, groups={**directory.groups, name: UserGroup(all_policies)})
        for member in members:
            user = find_user(directory, member)
            groups = tuple(dict.fromkeys((*user.groups, name)))
            directory = with_user(directory, member, replace(user, groups=groups))
        change.directory = directory
    click.echo(f"group {name}{_listed('policies', all_policies)}")


@users.command()
@click.argument("name")
@click.option(
    "--trust",
    required=True,
    type=click.Path(path_type=Path),
    help="A file with the trust policy, which says who may assume the role.",
)
@click.option("--policy", "policies", multiple=True, help="A policy that the role gets.")
@click.option(
    "--session-seconds",
    default=3600,
    show_default=True,
    type=click.IntRange(3600, SESSION_SECONDS_MAX),
    help="How long a session of the role may last.",
)
@access_options
def role(
    name: str, trust: Path, policies: tuple[str, ...], session_seconds: int, access: AccessFile
) -> None:
    """Add the role NAME, or change it."""
    check_name(name)
    text = read_text(trust)
    try:
        parse(text, name, TRUST)
    except PolicyError as error:
        raise PartitaError(f"{trust}, {error}") from error
    with access.changing() as change:
        former = change.directory.roles.get(name)
        changed_role = Role(
            former.id if former else new_id("AROA"),
            json.loads(text),
            policies or (former.policies if former else ()),
            former.boundary if former else None,
            session_seconds,
            former.created_at if former else time(),
        )
        roles = {**change.directory.roles, name: changed_role}
        change.directory = replace(change.directory, roles=roles)
    click.echo(f"role {name}{_listed('policies', changed_role.policies)}")


def read_text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise PartitaError(f"Cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise PartitaError(f"{path} is not text.") from error


def _show(key: AccessKey, access: AccessFile) -> None:
    click.echo(f"AWS_ACCESS_KEY_ID={key.id}")
    click.echo(f"AWS_SECRET_ACCESS_KEY={key.secret}")
    plain = "not encrypted, readable only by you (mode 0600)"
    state = "encrypted" if access.is_sealed else plain
    click.echo(f"The secret is shown only once. {access.path} stores it, {state}.", err=True)


def _attached(user: User) -> str:
    return _listed("groups", user.groups) + _listed("policies", user.policies)


def _listed(what: str, names: tuple[str, ...]) -> str:
    return f", {what}: {', '.join(names)}" if names else ""


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")
