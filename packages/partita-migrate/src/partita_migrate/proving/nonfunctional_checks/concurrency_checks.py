"""Many clients on one record and a failing transaction, tried on the tables of the design."""

from __future__ import annotations

from partita.client.client_errors import ClientError
from partita.database.item.attribute_values import Item
from partita_migrate.model.design import Design, TableDesign
from partita_migrate.proving.proof_run.proof_results import ProofCheck
from partita_migrate.proving.sandbox.private_dynamodb import DynamoDBClient

CLIENTS = 25
COUNTER = "partita_test_counter"
PROBE = "partita-test-probe"


def load_checks(server: DynamoDBClient, design: Design, prefix: str) -> list[ProofCheck]:
    return [_many_clients(server, design, prefix), _half_a_transaction(server, design, prefix)]


def _any_item(
    server: DynamoDBClient, design: Design, prefix: str
) -> tuple[TableDesign, Item] | None:
    for table in design.tables:
        items = server.call("Scan", TableName=prefix + table.name, Limit=1).get("Items", [])
        if items:
            return table, items[0]
    return None


def _many_clients(server: DynamoDBClient, design: Design, prefix: str) -> ProofCheck:
    """Checks that many writers on one record lose none of their changes."""
    name = f"{CLIENTS} clients on one record"
    loaded = _any_item(server, design, prefix)
    if loaded is None:
        return ProofCheck(name=name, outcome="not done", detail="no item was loaded.")
    table, item = loaded
    target = {
        "TableName": prefix + table.name,
        "Key": {key.name: item[key.name] for key in table.keys},
    }
    counted = {
        **target,
        "UpdateExpression": "ADD #c :one",
        "ExpressionAttributeNames": {"#c": COUNTER},
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    server.call_all(("UpdateItem", dict(counted)) for _ in range(CLIENTS))
    # Optimistic locking: of many writes with the same condition, one may succeed.
    locked = {
        **target,
        "UpdateExpression": "SET #c = :new",
        "ConditionExpression": "#c = :old",
        "ExpressionAttributeNames": {"#c": COUNTER},
        "ExpressionAttributeValues": {":new": {"N": "0"}, ":old": {"N": str(CLIENTS)}},
    }
    winners = server.try_all(("UpdateItem", dict(locked)) for _ in range(CLIENTS))
    server.call(
        "UpdateItem",
        **target,
        UpdateExpression="REMOVE #c",
        ExpressionAttributeNames={"#c": COUNTER},
    )
    is_right = winners == 1
    return ProofCheck(
        name=name,
        outcome="passed" if is_right else "failed",
        detail=(
            f"{CLIENTS} additions at once were all counted, and of {CLIENTS} conditional writes"
            f" (optimistic locking) {winners} won."
        ),
    )


def _half_a_transaction(server: DynamoDBClient, design: Design, prefix: str) -> ProofCheck:
    """Checks that a transaction of which one part fails changes nothing."""
    name = "a failing part"
    loaded = _any_item(server, design, prefix)
    if loaded is None:
        return ProofCheck(name=name, outcome="not done", detail="no item was loaded.")
    table, item = loaded
    place = prefix + table.name
    changed = {**item, PROBE: {"S": "half"}}
    calls = [
        {"Put": {"TableName": place, "Item": changed}},
        {
            "ConditionCheck": {
                "TableName": place,
                "Key": {
                    key.name: {key.type: "AAAA" if key.type == "B" else _nobody(key.type)}
                    for key in table.keys
                },
                "ConditionExpression": "attribute_exists(#k)",
                "ExpressionAttributeNames": {"#k": table.partition_key.name},
            }
        },
    ]
    try:
        server.call("TransactWriteItems", TransactItems=calls)
        return ProofCheck(name=name, outcome="failed", detail="it was carried out anyway.")
    except ClientError as error:
        error_code = error.code
    key = {key_attribute.name: item[key_attribute.name] for key_attribute in table.keys}
    after = server.call("GetItem", TableName=place, Key=key, ConsistentRead=True).get("Item")
    return ProofCheck(
        name=name,
        outcome="passed" if after == item else "failed",
        detail=f"a transaction whose second part fails ({error_code}) leaves the first undone.",
    )


def _nobody(kind: str) -> str:
    return "-987654321" if kind == "N" else "~nobody"
