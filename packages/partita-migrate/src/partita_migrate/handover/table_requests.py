"""The tables of a design as CreateTable requests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct, field

from partita.errors import PartitaError
from partita_migrate.costing.bill import Bill, EstimateSettings, PricingOption, bill, whole_units
from partita_migrate.costing.capacity_estimate import CapacityEstimate, units
from partita_migrate.costing.prices.price_list import read_prices
from partita_migrate.handover.create_settings import CreateSettings
from partita_migrate.model.design import Design, KeyAttribute, SecondaryIndex, TableDesign
from partita_migrate.model.design_findings import subject_of
from partita_migrate.model.model_files import CHOSEN, read_design
from partita_migrate.model.unknown_names import refuse_unknown_names
from partita_migrate.model.volumes import read_volumes
from partita_migrate.understanding.patterns.pattern_files import read_patterns
from partita_migrate.understanding.schema.name_words import is_dynamodb_name
from partita_migrate.workspace.migration_folder import Folder

KINDS: tuple[Literal["Read", "Write"], ...] = ("Read", "Write")
MIGRATION_TAG = "migration"
CLASSES = {"Standard": "STANDARD", "Standard-IA": "STANDARD_INFREQUENT_ACCESS"}
TAG = re.compile(r"[\w +\-=.:/@]*")
"""The characters that a tag may have (guide, "Tagging restrictions in DynamoDB")."""


SCALED_TIMES_MAX = 2
"""The peak that auto scaling allows for, as a multiple of the stated rates. It is also the peak
that `test` tries by default."""


class AutoScalingBounds(Struct, frozen=True, kw_only=True):
    """The bounds of auto scaling for the reads or the writes of a table or global index."""

    index: str | None
    kind: Literal["Read", "Write"]
    minimum: int
    maximum: int
    target_percent: int

    @property
    def dimension(self) -> str:
        """Returns the name of the scalable dimension in Application Auto Scaling."""
        return f"dynamodb:{'index' if self.index else 'table'}:{self.kind}CapacityUnits"

    @property
    def metric(self) -> str:
        return f"DynamoDB{self.kind}CapacityUtilization"

    def resource(self, table: str) -> str:
        return f"table/{table}" + (f"/index/{self.index}" if self.index else "")


class TableRequest(Struct, frozen=True, kw_only=True):
    """The request that creates a table, and the settings that can only be made afterwards."""

    create: dict[str, Any]
    """The CreateTable request without tags."""
    tags: dict[str, str]
    time_to_live: str | None
    point_in_time_recovery: bool
    scaling: list[AutoScalingBounds] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.create["TableName"])

    @property
    def indexes(self) -> list[dict[str, Any]]:
        """Returns the global secondary indexes."""
        indexes: list[dict[str, Any]] = self.create.get("GlobalSecondaryIndexes", [])
        return indexes

    @property
    def local_indexes(self) -> list[dict[str, Any]]:
        indexes: list[dict[str, Any]] = self.create.get("LocalSecondaryIndexes", [])
        return indexes

    def create_request(self) -> dict[str, Any]:
        return {**self.create, "Tags": tag_list(self.tags)}


def tag_list(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def tables_of(folder: Folder, name: str = CHOSEN) -> list[TableRequest]:
    """Returns the tables of a model file, with the capacity that its patterns need."""
    design = read_design(folder, name)
    volumes = read_volumes(folder)
    patterns = read_patterns(folder, volumes.inventory).patterns
    # A model from Workbench does not say where attributes come from, so its names cannot be
    # checked.
    if not name.endswith(".json"):
        refuse_unknown_names(name, subject_of(design, patterns, volumes))
    settings = folder.section("create", CreateSettings)
    assumed = folder.section("estimate", EstimateSettings)
    needed = units(design, patterns, volumes)
    prices = read_prices(folder.path / assumed.prices if assumed.prices else None)
    return _Writer(design, settings, needed, bill(needed, prices, assumed), assumed).tables()


class _Writer:
    """Writes the requests, after it has chosen the capacity mode and the table class."""

    def __init__(
        self,
        design: Design,
        settings: CreateSettings,
        needed: CapacityEstimate,
        bill: Bill,
        assumed: EstimateSettings,
    ) -> None:
        self.design = design
        self.settings = settings
        self.needed = {(resource.table, resource.index): resource for resource in needed.resources}
        cheapest = _cheapest(bill, settings)
        self.is_on_demand = cheapest.name == "on-demand"
        self.is_scaled = cheapest.name == "auto scaling"
        self.table_class = (
            CLASSES[cheapest.table_class]
            if settings.table_class == "estimate"
            else settings.table_class
        )
        self.tags = {MIGRATION_TAG: _taggable(design.name), **settings.tags}
        self.assumed = assumed

    def tables(self) -> list[TableRequest]:
        if not self.design.tables:
            raise PartitaError(f"The model of {self.design.name} has no tables to create.")
        for text in (part for tag in self.settings.tags.items() for part in tag):
            if not TAG.fullmatch(text):
                raise PartitaError(
                    f"[create] tags has {text!r}; a tag may have letters, digits, spaces and + - ="
                    " . _ : / @."
                )
        return [self._table(table) for table in self.design.tables]

    def _table(self, table: TableDesign) -> TableRequest:
        for name in [table.name, *(index.name for index in table.indexes)]:
            if not is_dynamodb_name(name):
                raise PartitaError(
                    f"{name!r} cannot be the name of a table or an index of DynamoDB: 3 to 255"
                    " letters, digits, _, - and . are allowed. Change it in the model."
                )
        create = described(table)
        create["BillingMode"] = "PAY_PER_REQUEST" if self.is_on_demand else "PROVISIONED"
        if not self.is_on_demand:
            share = self.assumed.load / self.assumed.utilization if self.is_scaled else 1.0
            create["ProvisionedThroughput"] = self._throughput(table, None, share)
            for index in create.get("GlobalSecondaryIndexes", []):
                index["ProvisionedThroughput"] = self._throughput(table, index["IndexName"], share)
        if self.settings.stream != "none":
            create["StreamSpecification"] = {
                "StreamEnabled": True,
                "StreamViewType": self.settings.stream,
            }
        create["TableClass"] = self.table_class
        create["DeletionProtectionEnabled"] = self.settings.deletion_protection
        return TableRequest(
            create=create,
            tags=self.tags,
            time_to_live=table.ttl,
            point_in_time_recovery=self.assumed.point_in_time_recovery,
            scaling=list(self._scaling(table)) if self.is_scaled else [],
        )

    def _scaling(self, table: TableDesign) -> Iterator[AutoScalingBounds]:
        """Yields bounds between the units of the average load and the units of a peak."""
        target = self.assumed.utilization
        names = [None, *(index.name for index in table.indexes if index.kind == "global")]
        for name in names:
            least = self._throughput(table, name, self.assumed.load)
            most = self._throughput(table, name, SCALED_TIMES_MAX / target)
            for kind in KINDS:
                yield AutoScalingBounds(
                    index=name,
                    kind=kind,
                    minimum=least[f"{kind}CapacityUnits"],
                    maximum=most[f"{kind}CapacityUnits"],
                    target_percent=round(target * 100),
                )

    def _throughput(self, table: TableDesign, index: str | None, share: float) -> dict[str, int]:
        """Returns the units for a share of what the stated rates need."""
        used = [self.needed[table.name, index]]
        if index is None:
            # A local index uses the units of its table.
            used += [self.needed[table.name, index.name] for index in _local(table)]
        return {
            "ReadCapacityUnits": whole_units(
                used[0], sum(resource.read_units for resource in used) * share
            ),
            "WriteCapacityUnits": whole_units(
                used[0], sum(resource.write_units for resource in used) * share
            ),
        }


def described(table: TableDesign, prefix: str = "") -> dict[str, Any]:
    """Returns a table's keys and indexes as CreateTable takes them; `prefix` comes before its
    name."""
    content: dict[str, Any] = {
        "TableName": prefix + table.name,
        "AttributeDefinitions": _attribute_definitions(table),
        "KeySchema": _key_schema(table.keys),
    }
    for kind, member in (("local", "LocalSecondaryIndexes"), ("global", "GlobalSecondaryIndexes")):
        if indexes := [_index(index) for index in table.indexes if index.kind == kind]:
            content[member] = indexes
    return content


def _local(table: TableDesign) -> list[SecondaryIndex]:
    return [index for index in table.indexes if index.kind == "local"]


def _cheapest(bill: Bill, settings: CreateSettings) -> PricingOption:
    """Returns the cheapest possible option. Auto scaling is only taken if people choose it, because
    only they know their peaks."""
    names = (
        ("provisioned", "on-demand") if settings.capacity == "estimate" else (settings.capacity,)
    )
    return min(
        (option for option in bill.options if option.name in names),
        key=lambda option: option.monthly,
    )


def _attribute_definitions(table: TableDesign) -> list[dict[str, str]]:
    """Returns every key attribute once. Fails if an attribute has two types."""
    types: dict[str, str] = {}
    for key in [*table.keys, *(key for index in table.indexes for key in index.keys)]:
        if types.setdefault(key.name, key.type) != key.type:
            raise PartitaError(
                f"{table.name}: the key attribute {key.name} is {types[key.name]} in one place and"
                f" {key.type} in another; give it one type in the model."
            )
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


def _key_schema(keys: list[KeyAttribute]) -> list[dict[str, str]]:
    return [
        {"AttributeName": key.name, "KeyType": kind}
        for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)
    ]


def _index(index: SecondaryIndex) -> dict[str, Any]:
    projection: dict[str, Any] = {"ProjectionType": index.projection}
    if index.projection == "INCLUDE":
        projection["NonKeyAttributes"] = index.include
    return {
        "IndexName": index.name,
        "KeySchema": _key_schema(index.keys),
        "Projection": projection,
    }


def _taggable(text: str) -> str:
    """Replaces the characters of a database name that a tag may not have."""
    return "".join(sign if TAG.fullmatch(sign) else "_" for sign in text)
