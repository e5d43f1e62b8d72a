"""`partita policies`: manages and explains the policies of users, groups and roles."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from partita.errors import PartitaError
from partita.server.security.administration.access_options import access_options
from partita.server.security.administration.policy_simulation import (
    explained,
    simulated,
    simulated_caller,
)
from partita.server.security.administration.users_command import read_text
from partita.server.security.identities.access_file import AccessFile
from partita.server.security.identities.callers import Callers
from partita.server.security.identities.policy_attachments import attach as attach_policy
from partita.server.security.identities.policy_attachments import detach as detach_policy
from partita.server.security.identities.policy_attachments import holders
from partita.server.security.identities.user_directory import Directory, check_name
from partita.server.security.policies.managed_policies import DOCUMENTS, document_of
from partita.server.security.policies.policy_documents import (
    IDENTITY,
    RESOURCE,
    TRUST,
    Policy,
    PolicyError,
    parse,
)

KINDS = {"identity": IDENTITY, "resource": RESOURCE, "trust": TRUST}


@click.group()
def policies() -> None:
    """Policies of a data folder, as JSON in IAM's language."""


@policies.command()
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path))
@access_options
def put(name: str, file: Path, access: AccessFile) -> None:
    """Store the policy in FILE under NAME."""
    check_name(name)
    if name in DOCUMENTS:
        raise PartitaError(f"{name} is a managed policy and cannot be changed.")
    policy, text = _read(file, name, IDENTITY)
    with access.changing() as change:
        kept = {**change.directory.policies, name: json.loads(text)}
        change.directory = replace(change.directory, policies=kept)
    click.echo(f"{name} has {len(policy.statements)} statements.")


@policies.command("list")
@access_options
def list_policies(access: AccessFile) -> None:
    """Show the names of all policies, and who has them."""
    directory = access.load()
    for name in sorted({*directory.policies, *DOCUMENTS}):
        click.echo(f"{name}{_holders(directory, name)}")


@policies.command()
@click.argument("name")
@access_options
def show(name: str, access: AccessFile) -> None:
    """Print the policy NAME."""
    document: Any = access.load().policies.get(name)
    if document is None and name in DOCUMENTS:
        document = document_of(name)
    if document is None:
        raise _missing(name)
    click.echo(json.dumps(document, indent=2))


@policies.command()
@click.argument("name")
@access_options
def delete(name: str, access: AccessFile) -> None:
    """Delete the policy NAME. Nobody may have it any more."""
    with access.changing() as change:
        directory = change.directory
        if name not in directory.policies:
            raise _missing(name)
        holders = _holders(directory, name)
        if holders:
            raise PartitaError(f"{name} is in use{holders}: detach it first.")
        kept = {other: document for other, document in directory.policies.items() if other != name}
        change.directory = replace(directory, policies=kept)
    click.echo(f"{name} is deleted.")


def _holder_options(command: Any) -> Any:
    for kind in ("role", "group", "user"):
        command = click.option(f"--{kind}", help=f"The {kind}.")(command)
    return command


@policies.command()
@click.argument("name")
@_holder_options
@click.option("--boundary", is_flag=True, help="Attach it as the permissions boundary.")
@access_options
def attach(
    name: str,
    user: str | None,
    group: str | None,
    role: str | None,
    boundary: bool,
    access: AccessFile,
) -> None:
    """Give the policy NAME to a user, a group or a role."""
    with access.changing() as change:
        Callers(change.directory).policy(name)
        holder = _holder(user, group, role)
        change.directory = attach_policy(change.directory, name, holder, is_boundary=boundary)
    click.echo(f"{user or group or role} has {name}.")


@policies.command()
@click.argument("name")
@_holder_options
@access_options
def detach(
    name: str, user: str | None, group: str | None, role: str | None, access: AccessFile
) -> None:
    """Take the policy NAME from a user, a group or a role."""
    with access.changing() as change:
        change.directory = detach_policy(change.directory, name, _holder(user, group, role))
    click.echo(f"{user or group or role} no longer has {name}.")


@policies.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--kind", type=click.Choice(list(KINDS)), default="identity", show_default=True)
def validate(file: Path, kind: str) -> None:
    """Check the policy in FILE, and report an error with its line."""
    policy, _ = _read(file, file.name, KINDS[kind])
    click.echo(f"{file} is valid: {len(policy.statements)} statements.")


def _context_option(command: Any) -> Any:
    return click.option(
        "--context",
        "context_texts",
        multiple=True,
        metavar="KEY=VALUE[,VALUE]",
        help="A condition key of the request.",
    )(command)


def _resource_policy_option(command: Any) -> Any:
    return click.option(
        "--resource-policy",
        type=click.Path(path_type=Path),
        help="A file with the policy of the resource.",
    )(command)


@policies.command()
@click.argument("user")
@click.argument("action")
@click.argument("resource")
@_context_option
@_resource_policy_option
@access_options
def explain(
    user: str,
    action: str,
    resource: str,
    context_texts: tuple[str, ...],
    resource_policy: Path | None,
    access: AccessFile,
) -> None:
    """Explain whether USER, or role/NAME, may do ACTION on RESOURCE, and why."""
    caller = simulated_caller(access.load(), user)
    resource_policies = _resource_policies(resource_policy)
    for line in explained(caller, action, resource, _context(context_texts), resource_policies):
        click.echo(line)


@policies.command()
@click.argument("user")
@click.option("--action", "actions", multiple=True, required=True)
@click.option("--resource", "resources", multiple=True, default=("*",), show_default=True)
@_context_option
@_resource_policy_option
@access_options
def simulate(
    user: str,
    actions: tuple[str, ...],
    resources: tuple[str, ...],
    context_texts: tuple[str, ...],
    resource_policy: Path | None,
    access: AccessFile,
) -> None:
    """Print what SimulatePrincipalPolicy of IAM would answer for USER, or role/NAME."""
    caller = simulated_caller(access.load(), user)
    resource_policies = _resource_policies(resource_policy)
    answer = simulated(caller, actions, resources, _context(context_texts), resource_policies)
    click.echo(json.dumps(answer, indent=2))


def _resource_policies(path: Path | None) -> Sequence[Policy]:
    return () if path is None else (_read(path, path.name, RESOURCE)[0],)


def _context(context_texts: Sequence[str]) -> dict[str, Sequence[str]]:
    context: dict[str, Sequence[str]] = {}
    for text in context_texts:
        key, separator, values = text.partition("=")
        if not separator:
            raise PartitaError(f"A condition key is given as KEY=VALUE, not {text!r}.")
        context[key.lower()] = tuple(values.split(","))
    return context


def _read(path: Path, name: str, kind: str) -> tuple[Policy, str]:
    text = read_text(path)
    try:
        return parse(text, name, kind), text
    except PolicyError as error:
        raise PartitaError(f"{path}, {error}") from error


def _missing(name: str) -> PartitaError:
    return PartitaError(f"There is no policy {name}; `partita policies list` shows all.")


def _holders(directory: Directory, name: str) -> str:
    shown = ", ".join(holder.replace("/", " ", 1) for holder in holders(directory, name))
    return f" ({shown})" if shown else ""


def _holder(user: str | None, group: str | None, role: str | None) -> str:
    chosen = [
        f"{kind}/{name}"
        for kind, name in (("user", user), ("group", group), ("role", role))
        if name is not None
    ]
    if len(chosen) != 1:
        raise click.UsageError("Give one of --user, --group and --role.")
    return chosen[0]
