"""The tables of a design in the words of other tools, each as a text that goes into one file."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from partita_migrate.folder import Folder
from partita_migrate.handover.emit import boto3_script, cdk, cli_script, cloudformation, terraform
from partita_migrate.handover.tables import TableRequest, tables_of
from partita_migrate.model.files import CHOSEN

WRITERS: dict[str, tuple[str, Callable[[list[TableRequest]], str]]] = {
    "cloudformation": ("tables.cloudformation.json", cloudformation.write),
    "terraform": ("tables.tf.json", terraform.write),
    "cdk": ("tables_cdk.py", cdk.write),
    "boto3": ("tables_boto3.py", boto3_script.write),
    "cli": ("tables.sh", cli_script.write),
}
"""The file and the function of each format."""


class Emitted(Struct, frozen=True, kw_only=True):
    format: str
    file: str
    tables: list[str]


def emit(folder: Folder, formats: tuple[str, ...], name: str = CHOSEN) -> list[Emitted]:
    """Writes the tables of a model file, once for each format."""
    tables = tables_of(folder, name)
    found = []
    for one in formats:
        file, write = WRITERS[one]
        folder.write_text(file, write(tables))
        found.append(Emitted(format=one, file=file, tables=[table.name for table in tables]))
    return found
