"""The design by which rows become items (`design.toml`), moved by `partita migrate` itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from metric_catalogue.migration import catalogue_fence, items_from_rows
from metric_catalogue.stores.dynamodb.catalogue_tables import CatalogueTables
from metric_catalogue.stores.dynamodb.metric_items import LATEST, SET_ATTRIBUTES
from partita_migrate.designing.model_stage import check
from partita_migrate.handover.create_stage import create
from partita_migrate.model.model_files import to_toml
from partita_migrate.moving.loading.load import load
from partita_migrate.moving.target_access.item_positions import DELETED
from partita_migrate.moving.target_access.target_items import item_digest
from partita_migrate.moving.verifying.verify import verify
from partita_migrate.understanding.analyze_stage import analyze
from partita_migrate.understanding.plan_stage import plan
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from partita_migrate.workspace.migration_folder import Folder

from .conftest import Api, Catalogue, Serve, hybrid, scalar

OF_SERVERS = ("mode", "server", "guard")
"""The kinds of entries of the directory that are not made from rows."""

Item = dict[str, Any]


def write_of_every_kind(api: Api) -> None:
    api.add_primitive("late", "country", "city")
    api.add_primitive("all", "country", aggregationParam=99.5)
    api.add_hybrid("share", "100 * late / all")
    cut_off = {"chainedMetric": "late", "chainCutoffDate": "2019-01-01"}
    for name, changed in {
        "late": scalar(relatedDimensions=["city"], aggregationParam=95),
        "all": scalar(**cut_off),
        "share": hybrid("late / (late + 1)"),
    }.items():
        assert api("PUT", f"/metrics/{name}", changed).status == 200
    assert api("POST", "/metrics/share/deprecation", {"reason": "é"}).status == 200
    for name in ("waits", "taken"):
        api("POST", "/metric-groups", {"name": name, "relatedDimensions": ["country"]})
    assert api.add_hybrid("taken", "all + 1").status == 201


def folder_of(catalogue: Catalogue, path: Path, tables: CatalogueTables) -> Folder:
    named = ", ".join(f'"{table}"' for table in catalogue_fence.TABLES)
    source = f'url = "{catalogue.options["--mysql"]}"\ntables = [{named}]'
    (path / "migration.toml").write_text(f"[source]\n{source}\n")
    (path / "patterns.toml").write_text("")
    metrics, directory = items_from_rows.DESIGN.tables
    renamed = [replace(metrics, name=tables.metrics), replace(directory, name=tables.directory)]
    (path / "model.toml").write_text(to_toml(replace(items_from_rows.DESIGN, tables=renamed)))
    folder = Folder.open(path)
    plan(folder)
    analyze(folder)
    return folder


def digests(catalogue: Catalogue, tables: CatalogueTables) -> dict[tuple[str, str], bytes]:
    """Returns items by key, without the sets of older versions, which only the service knows."""
    client = catalogue.partita.client()
    items: dict[tuple[str, str], Item] = {}
    for table, sort_key in ((tables.metrics, "version"), (tables.directory, "kind")):
        for page in client.get_paginator("scan").paginate(TableName=table):
            for item in page["Items"]:
                if DELETED not in item and item.get("kind", {}).get("S") not in OF_SERVERS:
                    items[item["name"]["S"], item[sort_key]["S"]] = item
    latest = {name: int(item["latestVersion"]["N"]) for (name, version), item in items.items()
              if version == LATEST}  # fmt: skip
    for (name, version), item in items.items():
        if version.isdigit() and 0 < int(version) < latest[name]:
            for attribute in SET_ATTRIBUTES:
                item.pop(attribute, None)
    return {key: item_digest(item) for key, item in items.items()}


def test_the_service_writes_what_the_design_makes_of_its_rows(
    catalogue: Catalogue, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the mode `migrating` the service writes to both databases, each in its own way."""
    monkeypatch.setenv(PASSWORD_ENV, catalogue.mariadb.password)
    write_of_every_kind(serve("migrating"))
    moved = CatalogueTables(f"{catalogue.name}-moved")
    folder = folder_of(catalogue, tmp_path, moved)
    assert [one for one in check(folder) if one.severity == "error"] == []
    create(folder, catalogue.partita.url)
    loaded = load(folder, catalogue.partita.url, is_followed=False)
    assert [one.table for one in loaded.tables if one.failed] == []
    service, design = digests(catalogue, CatalogueTables(catalogue.name)), digests(catalogue, moved)
    assert len(service) == 4 + 8 + 2 + 1 + 2
    assert service == design
    assert verify(folder, catalogue.partita.url).different == 0
