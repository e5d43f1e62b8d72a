"""Writes the tables of a design for other tools, one file for each tool."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from partita_migrate.handover.emit import (
    boto3_script,
    cdk_stack,
    cli_script,
    cloudformation_template,
    terraform_configuration,
)
from partita_migrate.handover.table_requests import TableRequest, tables_of
from partita_migrate.model.model_files import CHOSEN
from partita_migrate.workspace.migration_folder import Folder

WRITERS: dict[str, tuple[str, Callable[[list[TableRequest]], str]]] = {
    "cloudformation": ("tables.cloudformation.json", cloudformation_template.write),
    "terraform": ("tables.tf.json", terraform_configuration.write),
    "cdk": ("tables_cdk.py", cdk_stack.write),
    "boto3": ("tables_boto3.py", boto3_script.write),
    "cli": ("tables.sh", cli_script.write),
}
"""The file name and the writer of each format."""


class EmittedFile(Struct, frozen=True, kw_only=True):
    """A file that was written, with its tables."""

    format: str
    file: str
    tables: list[str]


def emit(folder: Folder, formats: tuple[str, ...], name: str = CHOSEN) -> list[EmittedFile]:
    """Writes the tables of a model file in each of the formats."""
    tables = tables_of(folder, name)
    files = []
    for format_name in formats:
        file, write = WRITERS[format_name]
        folder.write_text(file, write(tables))
        files.append(
            EmittedFile(format=format_name, file=file, tables=[table.name for table in tables])
        )
    return files
