"""Resolves the tables, columns and values that the names of a statement stand for."""

from __future__ import annotations

from sqlglot import exp

from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import SourceColumn, SourceTable
from partita_migrate.understanding.statements.resolved_statements import (
    ColumnTest,
    Existence,
    NotExact,
    Parameter,
    Value,
)
from partita_migrate.understanding.statements.syntax_nodes import literal_of, shown


class StatementScope:
    """The names of a statement, and what was found in it so far."""

    def __init__(self, schema: SchemaLookup, outer: StatementScope | None = None) -> None:
        """`outer` is the scope of the statement around, inside of EXISTS and IN."""
        self.schema = schema
        self.outer = outer
        self.tables: dict[str, SourceTable] = {}
        """The tables by alias."""
        self.names: dict[str, int] = outer.names if outer is not None else {}
        self.existences: list[Existence] = []
        self.alternatives: list[list[tuple[ColumnTest, ...]]] = []
        """For each OR, its groups of tests, of which at least one group must hold."""

    def add_table(self, node: exp.Expression | None) -> SourceTable:
        if not isinstance(node, exp.Table):
            raise NotExact("it reads something that is not a table")
        table = self.schema.table(node.name, node.db)
        if table is None:
            raise NotExact(f"{node.name} is not among the tables of the source")
        # Reading a parent returns the rows of its children, which are items of another table.
        if table.is_inherited:
            raise NotExact(f"other tables inherit from {table.name}")
        if any(table is other for other in self.tables.values()):
            raise NotExact(f"it reads {table.name} twice: write a pattern for each")
        alias = (node.alias or node.name).lower()
        self.tables[alias] = table
        name = table.name
        if table.schema is not None:
            name = name.removeprefix(f"{table.schema}.")
            node.set("db", exp.to_identifier(table.schema, quoted=True))
        node.set("this", exp.to_identifier(name, quoted=True))
        node.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
        return table

    def column(self, node: exp.Column) -> ColumnRef:
        tables = list(self.tables.values())
        if node.table:
            definition = self.tables.get(node.table.lower())
            if definition is None:
                raise NotExact(f"{node.table} is not one of its tables")
            tables = [definition]
        for table in tables:
            column = self.schema.column(table, node.name)
            if column is not None:
                node.set("this", exp.to_identifier(column.name, quoted=True))
                node.set("table", exp.to_identifier(self.alias(table), quoted=True))
                return ColumnRef(table.name, column.name)
        raise NotExact(f"{node.name} is not a column of {tables[0].name}")

    def alias(self, table: SourceTable) -> str:
        return next(alias for alias, other in self.tables.items() if other is table)

    def value(self, node: exp.Expression, ref: ColumnRef | None, name: str) -> Value:
        """Returns a literal, or a parameter for a value that the caller can compute without the
        row."""
        literal = literal_of(node)
        if literal is not None:
            is_number = literal.value is not None and not isinstance(literal.value, str)
            if is_number and ref and self.schema.dialect == "mysql" and self.kind(ref) == "string":
                raise NotExact(
                    f"{ref} is converted to a number to be compared with {literal.value}"
                )
            return literal
        if node.find(exp.Select) is not None:
            raise NotExact(
                f"{shown(node)} is read first, and its result passed on: make it a pattern of"
                " its own"
            )
        if node.find(exp.Column) is not None:
            raise NotExact(f"it compares columns with each other: {shown(node.parent or node)}")
        parameter = self.parameter(name, ref)
        node.replace(exp.Placeholder(this=parameter.name))
        return parameter

    def parameter(
        self, name: str, ref: ColumnRef | None, outer: ColumnRef | None = None
    ) -> Parameter:
        """Returns a parameter. It is numbered if the statement has passed one of this name
        before."""
        count = self.names[name] = self.names.get(name, 0) + 1
        return Parameter(name if count == 1 else f"{name}.{count}", ref, outer)

    def parameter_name(self, ref: ColumnRef, suffix: str = "") -> str:
        first = next(iter(self.tables.values())).name
        return str(ColumnRef("", ref.column) if ref.table == first else ref) + suffix

    def inventoried(self, ref: ColumnRef) -> SourceColumn | None:
        table = next(table for table in self.tables.values() if table.name == ref.table)
        return self.schema.column(table, ref.column)

    def is_insensitive(self, ref: ColumnRef) -> bool:
        column = self.inventoried(ref)
        return column is not None and column.is_case_insensitive

    def is_padded(self, ref: ColumnRef) -> bool:
        """True when trailing blanks of a text do not count."""
        column = self.inventoried(ref)
        if column is None:
            return False
        is_unknown = self.schema.dialect == "mysql" and column.is_case_insensitive
        return column.pad == "PAD SPACE" or (is_unknown and not column.pad)

    def kind(self, ref: ColumnRef) -> str:
        column = self.inventoried(ref)
        return column.kind if column is not None else ""

    def is_nullable(self, ref: ColumnRef) -> bool:
        column = self.inventoried(ref)
        return column is None or column.is_nullable

    def may_be_null(self, ref: ColumnRef) -> bool:
        """True when the column can be NULL. SQLite allows NULL in a primary key, but such a row has
        no item, which `test` reports."""
        table = next(table for table in self.tables.values() if table.name == ref.table)
        return self.is_nullable(ref) and ref.column not in table.primary_key
