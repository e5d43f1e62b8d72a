"""The tables of a design in the words of other tools, each as a text that goes into one file."""

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
"""The file and the function of each format."""


class EmittedFile(Struct, frozen=True, kw_only=True):
    format: str
    file: str
    tables: list[str]


def emit(folder: Folder, formats: tuple[str, ...], name: str = CHOSEN) -> list[EmittedFile]:
    """Writes the tables of a model file, once for each format."""
    tables = tables_of(folder, name)
    found = []
    for one in formats:
        file, write = WRITERS[one]
        folder.write_text(file, write(tables))
        found.append(EmittedFile(format=one, file=file, tables=[table.name for table in tables]))
    return found
