"""Writes a Python script that creates the tables with boto3."""

from __future__ import annotations

from pprint import pformat
from textwrap import indent
from typing import Any

from partita_migrate.handover.auto_scaling_updates import policies
from partita_migrate.handover.table_requests import TableRequest

WIDTH = 96
SCRIPT = '''"""Makes the tables of the migration {migration} with boto3.

Those that exist stay as they are. boto3 finds region, credentials and AWS_ENDPOINT_URL_DYNAMODB
in the environment.
"""

import boto3
from botocore.exceptions import ClientError

TABLES = [
{tables}]
EXPIRY = {expiry}
RECOVERY = {recovery}
SCALING = {scaling}


def main() -> None:
    dynamodb = boto3.client("dynamodb")
    made = []
    for table in TABLES:
        name = table["TableName"]
        try:
            dynamodb.create_table(**table)
            made.append(name)
        except dynamodb.exceptions.ResourceInUseException:
            print(f"{{name}} is there already and stays as it is.")
    for name in made:
        dynamodb.get_waiter("table_exists").wait(
            TableName=name, WaiterConfig={{"Delay": 1, "MaxAttempts": 600}}
        )
        if name in EXPIRY:
            dynamodb.update_time_to_live(
                TableName=name,
                TimeToLiveSpecification={{"AttributeName": EXPIRY[name], "Enabled": True}},
            )
        if name in RECOVERY:
            try:
                dynamodb.update_continuous_backups(
                    TableName=name,
                    PointInTimeRecoverySpecification={{"PointInTimeRecoveryEnabled": True}},
                )
            except ClientError as error:
                if error.response["Error"]["Code"] != "UnknownOperationException":
                    raise
                print(f"{{name}}: this endpoint has no point-in-time recovery.")
        for target, policy in SCALING.get(name, []):
            scaling = boto3.client("application-autoscaling")
            scaling.register_scalable_target(**target)
            scaling.put_scaling_policy(**policy)
        print(f"{{name}} was made.")


if __name__ == "__main__":
    main()
'''


def write(tables: list[TableRequest]) -> str:
    return SCRIPT.format(
        migration=tables[0].tags["migration"],
        tables="".join(
            f"{indent(_literal(table.create_request()), ' ' * 4)},\n" for table in tables
        ),
        expiry=_literal({table.name: table.time_to_live for table in tables if table.time_to_live}),
        scaling=_literal({table.name: policies(table) for table in tables if table.scaling}),
        recovery=_literal([table.name for table in tables if table.point_in_time_recovery]),
    )


def _literal(value: Any) -> str:
    return pformat(value, width=WIDTH, sort_dicts=False)
