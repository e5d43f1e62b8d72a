"""The commands of `partita pagehits`. They parse options, and import what they run only when they
run it, so that `--help` stays fast."""

from __future__ import annotations

import click

from page_hit_counter.commands.aws_commands import cloudformation, cost, flink_sql
from page_hit_counter.commands.legacy_commands import compare, serve_old
from page_hit_counter.commands.log_commands import logs
from page_hit_counter.commands.service_commands import import_logs, serve
from page_hit_counter.commands.signature_commands import keys, sign
from page_hit_counter.commands.spam_commands import quarantine


@click.group()
def pagehits() -> None:
    """Count page visits, and list what is most popular."""


for command in (
    serve,
    import_logs,
    quarantine,
    keys,
    sign,
    logs,
    serve_old,
    compare,
    cost,
    flink_sql,
    cloudformation,
):
    pagehits.add_command(command)
