"""Random small databases and statements, all from one seed."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta

TYPES = {
    "sqlite": {
        "id": "INTEGER PRIMARY KEY",
        "number": "INTEGER",
        "text": "TEXT",
        "nocase": "TEXT COLLATE NOCASE",
        "money": "DECIMAL(10, 2)",
        "day": "DATE",
        "moment": "DATETIME",
        "flag": "BOOLEAN",
    },
    "mysql": {
        "id": "INT AUTO_INCREMENT PRIMARY KEY",
        "number": "INT",
        "text": "VARCHAR(40) COLLATE utf8mb4_bin",
        "nocase": "VARCHAR(40) COLLATE utf8mb4_general_ci",
        "money": "DECIMAL(10, 2)",
        "day": "DATE",
        "moment": "DATETIME",
        "flag": "BOOLEAN",
    },
    "postgresql": {
        "id": "INT PRIMARY KEY",
        "number": "BIGINT",
        "text": "TEXT",
        "nocase": "VARCHAR(40)",
        "money": "NUMERIC(10, 2)",
        "day": "DATE",
        "moment": "TIMESTAMP WITH TIME ZONE",
        "flag": "BOOLEAN",
    },
}
WORDS = [
    "a",
    "A",
    "b#c",
    "b",
    "B c",
    "ä",
    "É",
    "%",
    "zz",
    "10",
    "9",
    "a b",
    "x'y",
    "&",
    "~",
    "Ω",
    "",
]


class Column:
    def __init__(self, name: str, kind: str, is_nullable: bool, few: bool) -> None:
        self.name = name
        self.kind = kind
        self.is_nullable = is_nullable
        self.few = few


class Table:
    def __init__(self, name: str, columns: list[Column], parents: list[str], count: int) -> None:
        self.name = name
        self.columns = columns
        self.parents = parents
        self.count = count

    @property
    def names(self) -> list[str]:
        return ["id", *(f"{one}_id" for one in self.parents), *(one.name for one in self.columns)]


class Chance:
    def __init__(self, seed: int, dialect: str = "sqlite") -> None:
        self.random = random.Random(seed)
        self.dialect = dialect
        self.types = TYPES[dialect]
        self.tables: list[Table] = []
        for number in range(self.random.randint(2, 4)):
            parents = [t.name for t in self.tables if self.random.random() < 0.5][:2]
            columns = [
                Column(
                    f"c{place}",
                    self.random.choice(
                        ["number", "text", "nocase", "money", "day", "moment", "flag"]
                    ),
                    self.random.random() < 0.3,
                    self.random.random() < 0.6,
                )
                for place in range(self.random.randint(2, 5))
            ]
            count = self.random.randint(5, 40)
            self.tables.append(Table(f"tab{number}", columns, parents, count))

    # The database.

    def script(self) -> str:
        return "\n".join([*map(self._create, self.tables), *self._inserts()])

    def _create(self, table: Table) -> str:
        lines = [f"id {self.types['id']}"]
        nullable = self.random.random() < 0.3
        lines += [f"{one}_id INT{'' if nullable else ' NOT NULL'}" for one in table.parents]
        lines += [
            f"{one.name} {self.types[one.kind]}{'' if one.is_nullable else ' NOT NULL'}"
            for one in table.columns
        ]
        lines += [f"FOREIGN KEY ({one}_id) REFERENCES {one} (id)" for one in table.parents]
        return f"CREATE TABLE {table.name} ({', '.join(lines)});"

    def _inserts(self) -> list[str]:
        counts = {table.name: table.count for table in self.tables}
        found = []
        for table in self.tables:
            for number in range(1, table.count + 1):
                cells = [str(number)]
                cells += [str(self.random.randint(1, counts[one])) for one in table.parents]
                cells += [self._literal(one) for one in table.columns]
                found.append(f"INSERT INTO {table.name} VALUES ({', '.join(cells)});")
        return found

    def _literal(self, column: Column) -> str:
        if column.is_nullable and self.random.random() < 0.25:
            return "NULL"
        number = self.random.randint(0, 3) if column.few else self.random.randint(-2000, 2000)
        if column.kind == "number":
            return str(number)
        if column.kind == "money":
            return f"{number / 4:.2f}"
        if column.kind == "flag":
            return "TRUE" if number % 2 else "FALSE"
        if column.kind == "day":
            return f"'{date(2026, 1, 1) + timedelta(days=number)}'"
        if column.kind == "moment":
            return f"'{datetime(2026, 1, 1) + timedelta(minutes=number * 7)}'"
        word = self.random.choice(WORDS[:4] if column.few else WORDS)
        return "'" + word.replace("'", "''") + "'"

    # Statements.

    def statements(self) -> dict[str, str]:
        kinds = [self._select] * 6 + [self._joined, self._below, self._counted]
        kinds += [self._listed, self._listed]
        kinds += [self._insert, self._update, self._delete]
        kinds += [self._either, self._either, self._lowered, self._upsert]
        found = {}
        for number in range(self.random.randint(4, 8)):
            table = self.random.choice(self.tables)
            found[f"p{number}"] = self.random.choice(kinds)(table)
        return found

    def _select(self, table: Table) -> str:
        columns = "*" if self.random.random() < 0.5 else ", ".join(self._some(table.names))
        return f"SELECT {columns} FROM {table.name}{self._where(table)}{self._order(table)}"

    def _listed(self, table: Table) -> str:
        """A condition without a key value: all rows, an open range, or one status."""
        column = self.random.choice(table.columns)
        tests = [f"{column.name} IS {self.random.choice(['', 'NOT '])}NULL", "", ""]
        if column.kind in ("number", "flag"):
            tests.append(f"{column.name} = {'TRUE' if column.kind == 'flag' else 1}")
        if column.kind == "text":
            tests.append(f"{column.name} = 'a'")
        if column.kind in ("day", "moment"):
            tests.append(f"{column.name} >= ?")
        test = self.random.choice(tests)
        where = f" WHERE {test}" if test else ""
        wanted = self.random.choice(["*", "COUNT(*)", ", ".join(self._some(table.names))])
        order = "" if wanted == "COUNT(*)" else self._order(table)
        return f"SELECT {wanted} FROM {table.name}{where}{order}"

    def _either(self, table: Table) -> str:
        """One of several conditions, with an order over the rows of all."""
        groups = [self._where(table).removeprefix(" WHERE ") for _ in range(2)]
        if self.random.random() < 0.3:
            groups.append("id = ?")
        wanted = self.random.choice(["*", "id", ", ".join(self._some(table.names))])
        return (
            f"SELECT {wanted} FROM {table.name} WHERE ({') OR ('.join(groups)}){self._order(table)}"
        )

    def _lowered(self, table: Table) -> str:
        texts = [one.name for one in table.columns if one.kind in ("text", "nocase")]
        if not texts:
            return self._either(table)
        function = self.random.choice(["lower", "UPPER"])
        test = f"{function}({self.random.choice(texts)}) = {self.random.choice(['?', 'lower(?)'])}"
        return f"SELECT * FROM {table.name} WHERE {test}{self._order(table)}"

    def _upsert(self, table: Table) -> str:
        first, *others = [one.name for one in table.columns]
        brought = f"VALUES({first})" if self.dialect == "mysql" else f"excluded.{first}"
        changes = ", ".join([f"{first} = {brought}", *(f"{name} = ?" for name in others[:1])])
        if self.dialect == "mysql":
            return f"{self._insert(table)} ON DUPLICATE KEY UPDATE {changes}"
        action = self.random.choice([f"(id) DO UPDATE SET {changes}", "DO NOTHING"])
        return f"{self._insert(table)} ON CONFLICT {action}"

    def _some(self, names: list[str]) -> list[str]:
        return self.random.sample(names, self.random.randint(1, len(names)))

    def _where(self, table: Table, prefix: str = "") -> str:
        keys = ["id", *(f"{one}_id" for one in table.parents)]
        texts = [one.name for one in table.columns]
        tests = [f"{prefix}{self.random.choice(keys if self.random.random() < 0.6 else texts)} = ?"]
        for one in table.columns:
            chance = self.random.random()
            name = f"{prefix}{one.name}"
            if f"{name} = ?" in tests:
                continue
            if chance < 0.1:
                tests.append(f"{name} {self.random.choice(['<', '<=', '>', '>='])} ?")
            elif chance < 0.16:
                tests.append(f"{name} BETWEEN ? AND ?")
            elif chance < 0.2 and one.is_nullable:
                tests.append(f"{name} IS {self.random.choice(['', 'NOT '])}NULL")
            elif chance < 0.25:
                tests.append(f"{name} <> ?")
            elif chance < 0.3:
                tests.append(f"{name} IN (?, ?)")
            elif chance < 0.35:
                tests.append(f"{name} = ?")
        return f" WHERE {' AND '.join(tests)}"

    def _order(self, table: Table, prefix: str = "") -> str:
        if self.random.random() < 0.4:
            return ""
        names = self.random.sample(table.names, self.random.randint(1, 2))
        desc = self.random.choice(["", " DESC"])
        order = ", ".join(f"{prefix}{name}{desc}" for name in names)
        limit = self.random.choice(["", " LIMIT 3", " LIMIT 10", " LIMIT 4 OFFSET 2"])
        return f" ORDER BY {order}{limit}"

    def _joined(self, table: Table) -> str:
        if not table.parents:
            return self._select(table)
        parent = next(one for one in self.tables if one.name == table.parents[0])
        join = self.random.choice(["JOIN", "LEFT JOIN"])
        tested, alias = self.random.choice([(table, "a."), (parent, "b.")])
        wanted = self.random.choice(["a.*, b.*", "a.id, b.id", f"a.*, b.{parent.columns[0].name}"])
        return (
            f"SELECT {wanted} FROM {table.name} a {join} {parent.name} b"
            f" ON b.id = a.{parent.name}_id{self._where(tested, alias)}{self._order(table, 'a.')}"
        )

    def _below(self, table: Table) -> str:
        """From a parent down to its children."""
        if not table.parents:
            return self._counted(table)
        parent = self.random.choice(table.parents)
        order = self.random.choice(["", " ORDER BY a.id", f" ORDER BY a.{table.columns[0].name}"])
        join = self.random.choice(["JOIN", "INNER JOIN", "LEFT JOIN"])
        return (
            f"SELECT b.*, a.id, a.{table.columns[-1].name} FROM {parent} b"
            f" {join} {table.name} a ON a.{parent}_id = b.id WHERE b.id = ?{order}"
        )

    def _counted(self, table: Table) -> str:
        wanted = self.random.choice(
            ["COUNT(*)", f"MAX({table.columns[0].name})", f"DISTINCT {table.columns[0].name}"]
        )
        return f"SELECT {wanted} FROM {table.name}{self._where(table)}"

    def _insert(self, table: Table) -> str:
        marks = ", ".join("?" * len(table.names))
        return f"INSERT INTO {table.name} ({', '.join(table.names)}) VALUES ({marks})"

    def _update(self, table: Table) -> str:
        names = self._some([one.name for one in table.columns])
        changes = ", ".join(f"{name} = ?" for name in names)
        keys = ["id", *(f"{one}_id" for one in table.parents)]
        return f"UPDATE {table.name} SET {changes} WHERE {self.random.choice(keys)} = ?"

    def _delete(self, table: Table) -> str:
        return f"DELETE FROM {table.name} WHERE id = ?"
