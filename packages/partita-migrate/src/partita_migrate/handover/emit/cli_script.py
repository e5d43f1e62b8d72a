"""Writes a shell script that creates the tables with the AWS CLI."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from partita_migrate.handover.auto_scaling_updates import policies
from partita_migrate.handover.table_requests import TableRequest

HEAD = """#!/usr/bin/env bash
# Makes the tables of the migration {migration} with the AWS CLI; those that exist stay as they are.
# The CLI finds region, credentials and AWS_ENDPOINT_URL_DYNAMODB in the environment.
set -euo pipefail
export AWS_PAGER=""
"""
RECOVERY_REFUSED = "this endpoint refused point-in-time recovery"


def write(tables: list[TableRequest]) -> str:
    parts = [HEAD.format(migration=tables[0].tags["migration"])]
    parts += ["\n".join(_table(table)) + "\n" for table in tables]
    return "\n".join(parts)


def _table(table: TableRequest) -> Iterator[str]:
    name = shlex.quote(table.name)
    yield f"if aws dynamodb describe-table --table-name {name} >/dev/null 2>&1; then"
    yield f"  echo {shlex.quote(f'{table.name} is there already and stays as it is.')}"
    yield "else"
    made = json.dumps(table.create_request(), indent=2)
    yield f"  aws dynamodb create-table --cli-input-json {shlex.quote(made)} >/dev/null"
    yield f"  aws dynamodb wait table-exists --table-name {name}"
    if table.time_to_live:
        expiry = json.dumps({"AttributeName": table.time_to_live, "Enabled": True})
        yield (
            f"  aws dynamodb update-time-to-live --table-name {name}"
            f" --time-to-live-specification {shlex.quote(expiry)} >/dev/null"
        )
    if table.point_in_time_recovery:
        yield (
            f"  aws dynamodb update-continuous-backups --table-name {name}"
            " --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true"
            f" >/dev/null 2>&1 || echo {shlex.quote(f'{table.name}: {RECOVERY_REFUSED}.')}"
        )
    for target, policy in policies(table):
        for command, content in (
            ("register-scalable-target", target),
            ("put-scaling-policy", policy),
        ):
            request = shlex.quote(json.dumps(content))
            yield f"  aws application-autoscaling {command} --cli-input-json {request} >/dev/null"
    yield f"  echo {shlex.quote(f'{table.name} was made.')}"
    yield "fi"
