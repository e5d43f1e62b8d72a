"""Models of NoSQL Workbench (JSON, version 3.0): written from a design, and read into one.

Workbench knows tables, global indexes and sample items, but not where an attribute comes from. A
model that was read must therefore be completed by hand before rows can be mapped: until then every
attribute outside the keys is a constant with an empty text.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from partita.database.item.attribute_values import AttributeValue, Item
from partita.errors import PartitaError
from partita_migrate.model.design import (
    AttributeType,
    Design,
    Entity,
    ItemAttribute,
    KeyAttribute,
    SecondaryIndex,
    TableDesign,
)
from partita_migrate.model.items.example_items import ExampleItems

DATE = "%b %d, %Y, %I:%M %p"
MINIMUM_UNITS = 1
TARGET_UTILIZATION = 70
SCALING_ROLE = "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"


def to_workbench(
    design: Design,
    *,
    author: str = "Partita",
    now: datetime,
    examples: dict[str, list[Item]] | None = None,
) -> dict[str, Any]:
    """Returns the content of a file that Workbench imports, with items made of the source's example
    rows.

    Types of items without example rows get placeholder items.
    """
    items = ExampleItems(examples or {})
    date = now.strftime(DATE)
    return {
        "ModelName": f"{design.name} {design.kind}",
        "ModelMetadata": {
            "Author": author,
            "DateCreated": date,
            "DateLastModified": date,
            "Description": "\n".join(design.choices),
            "AWSService": "Amazon DynamoDB",
            "Version": "3.0",
        },
        "DataModel": [_table(table, items) for table in design.tables],
    }


def _table(table: TableDesign, items: ExampleItems) -> dict[str, Any]:
    content: dict[str, Any] = {
        "TableName": table.name,
        "KeyAttributes": _keys(table),
        "NonKeyAttributes": [
            {"AttributeName": name, "AttributeType": kind}
            for name, kind in _attributes(table).items()
            if name not in {key.name for key in table.keys}
        ],
        "TableFacets": [_facet(table, entity) for entity in table.entities],
    }
    globals_ = [index for index in table.indexes if index.kind == "global"]
    if globals_:
        content["GlobalSecondaryIndexes"] = [_index(index) for index in globals_]
    content["TableData"] = [item for entity in table.entities for item in items.of(entity)]
    # NoSQL Workbench requires both fields in an import, although nothing here uses them.
    content["DataAccess"] = {"MySql": {}}
    content["BillingMode"] = "PROVISIONED"
    content["ProvisionedCapacitySettings"] = _capacity()
    return content


def _attributes(table: TableDesign) -> dict[str, str]:
    return {
        attribute.name: attribute.type
        for entity in table.entities
        for attribute in entity.attributes
    }


def _keys(keys: TableDesign | SecondaryIndex) -> dict[str, Any]:
    content = {"PartitionKey": _key(keys.partition_key)}
    if keys.sort_key:
        content["SortKey"] = _key(keys.sort_key)
    return content


def _key(key: KeyAttribute) -> dict[str, str]:
    return {"AttributeName": key.name, "AttributeType": key.type}


def _facet(table: TableDesign, entity: Entity) -> dict[str, Any]:
    alias = {"PartitionKeyAlias": _alias(entity, table.partition_key)}
    if table.sort_key:
        alias["SortKeyAlias"] = _alias(entity, table.sort_key)
    keys = {key.name for key in table.keys}
    return {
        "FacetName": entity.name,
        "KeyAttributeAlias": alias,
        "TableData": [],
        "NonKeyAttributes": [
            attribute.name for attribute in entity.attributes if attribute.name not in keys
        ],
    }


def _alias(entity: Entity, key: KeyAttribute) -> str:
    attribute = entity.attribute(key.name)
    if attribute is None:
        return key.name
    return attribute.template or attribute.constant or key.name


def _index(index: SecondaryIndex) -> dict[str, Any]:
    projection: dict[str, Any] = {"ProjectionType": index.projection}
    if index.projection == "INCLUDE":
        projection["NonKeyAttributes"] = index.include
    return {"IndexName": index.name, "KeyAttributes": _keys(index), "Projection": projection}


def _capacity() -> dict[str, Any]:
    scaling = {
        "ScalableTargetRequest": {
            "MinCapacity": MINIMUM_UNITS,
            "MaxCapacity": 10,
            "ServiceRole": SCALING_ROLE,
        },
        "ScalingPolicyConfiguration": {"TargetValue": TARGET_UTILIZATION},
    }
    return {
        "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
        "AutoScalingRead": scaling,
        "AutoScalingWrite": scaling,
    }


# Reading.


def from_workbench(content: bytes) -> Design:
    try:
        model = msgspec.json.decode(content)
        tables = [_read_table(table) for table in model["DataModel"]]
        return Design(
            name=model["ModelName"],
            kind="single-table" if len(tables) == 1 else "denormalized",
            choices=[line for line in _description(model) if line],
            tables=tables,
        )
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise PartitaError(f"This is not a model of NoSQL Workbench: {error}.") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise PartitaError(
            f"This is not a model of NoSQL Workbench: {error} is missing or malformed."
        ) from error


def _description(model: dict[str, Any]) -> list[str]:
    text: str = model.get("ModelMetadata", {}).get("Description", "")
    return text.splitlines()


def _read_table(table: dict[str, Any]) -> TableDesign:
    partition, sort = _read_keys(table["KeyAttributes"])
    return TableDesign(
        name=table["TableName"],
        partition_key=partition,
        sort_key=sort,
        indexes=[_read_index(index) for index in table.get("GlobalSecondaryIndexes", [])],
        entities=_read_entities(table),
    )


def _read_keys(keys: dict[str, Any]) -> tuple[KeyAttribute, KeyAttribute | None]:
    def key_attribute(key: dict[str, str]) -> KeyAttribute:
        return msgspec.convert(
            {"name": key["AttributeName"], "type": key["AttributeType"]}, KeyAttribute
        )

    return key_attribute(keys["PartitionKey"]), key_attribute(keys["SortKey"]) if keys.get(
        "SortKey"
    ) else None


def _read_index(index: dict[str, Any]) -> SecondaryIndex:
    partition, sort = _read_keys(index["KeyAttributes"])
    projection = index.get("Projection", {"ProjectionType": "ALL"})
    return SecondaryIndex(
        name=index["IndexName"],
        partition_key=partition,
        sort_key=sort,
        projection=msgspec.convert(projection["ProjectionType"], type=Any),
        include=list(projection.get("NonKeyAttributes", [])),
    )


def _read_entities(table: dict[str, Any]) -> list[Entity]:
    kinds: dict[str, AttributeType] = {
        attribute["AttributeName"]: attribute["AttributeType"]
        for attribute in table.get("NonKeyAttributes", [])
    }
    items: list[Item] = table.get("TableData", [])
    kinds |= {name: _kind(value) for item in items for name, value in item.items()}
    keys = [key for key in _read_keys(table["KeyAttributes"]) if key]
    facets = table.get("TableFacets") or [
        {"FacetName": table["TableName"], "NonKeyAttributes": list(kinds)}
    ]
    entities = []
    for facet in facets:
        aliases = list(facet.get("KeyAttributeAlias", {}).values())
        attributes = [
            _read_attribute(key.name, key.type, alias)
            for key, alias in zip(keys, [*aliases, "", ""], strict=False)
        ]
        names = [
            name
            for name in facet.get("NonKeyAttributes", [])
            if name not in {key.name for key in keys}
        ]
        attributes += [_read_attribute(name, kinds.get(name, "S"), "") for name in names]
        entities.append(Entity(name=facet["FacetName"], source="", attributes=attributes))
    return entities


def _read_attribute(name: str, kind: AttributeType, alias: str) -> ItemAttribute:
    if "{" in alias:
        return ItemAttribute(name=name, type=kind, template=alias)
    return ItemAttribute(name=name, type=kind, constant=alias if alias != name else "")


def _kind(value: AttributeValue) -> AttributeType:
    (kind,) = value
    return kind  # type: ignore[return-value]
