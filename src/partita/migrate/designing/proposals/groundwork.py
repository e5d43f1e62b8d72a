"""What both designs start from: roles, needs, and the key plan of every type of item."""

from __future__ import annotations

import math

from partita.limits import KB, PARTITION_WRITE_UNITS
from partita.migrate.costing.units import TRANSACTION_FACTOR
from partita.migrate.designing.proposals.assigning import Assigner
from partita.migrate.designing.proposals.drafts import Draft, Drafter
from partita.migrate.designing.proposals.keys import Key, KeyChooser, KeyPlan
from partita.migrate.designing.proposals.needs import Reader
from partita.migrate.designing.settings import ModelSettings, unique_name
from partita.migrate.model.design import Access, DesignKind, LeftOut, Unique
from partita.migrate.model.volumes import Volumes
from partita.migrate.understanding.patterns.access_patterns import KEY_MUST_HOLD, AccessPattern
from partita.migrate.understanding.schema.column_refs import Ref
from partita.migrate.understanding.schema.graph import SchemaGraph

SHARD_LOAD = 0.5
"""How much of a partition a shard may use, so that uneven shards still fit."""

DATES = ("date", "datetime", "time")


class Groundwork:
    def __init__(
        self,
        volumes: Volumes,
        patterns: list[AccessPattern],
        settings: ModelSettings,
        kind: DesignKind,
    ) -> None:
        self.volumes = volumes
        self.settings = settings
        self.patterns = patterns
        self.schema = SchemaGraph(
            volumes.inventory,
            settings.exclude,
            [name for pattern in patterns for name in pattern.through],
        )
        self.roles = Assigner(self.schema, patterns, volumes, settings, kind).assign()
        self.needs = Reader(self.schema, self.roles, kind, settings.expire).needs(patterns)
        self.drafter = Drafter(self.schema, self.roles, volumes, settings, self.needs)
        self.entities = [name for name in self.schema.tables if self.roles.entity_of(name) == name]
        self.plans = {name: self._plan(name) for name in self.entities}

    def _plan(self, entity: str) -> KeyPlan:
        return KeyChooser(
            self.schema,
            self.volumes,
            entity,
            self.identities(entity),
            self.needs.of(entity),
            self.needs.writes_of(entity),
            [need for need in self.needs.reads if need.entity != entity],
            fixed=self._fixed(entity),
            is_checked=self._is_checked(entity),
            is_whole_row=not self._is_identified(entity),
        ).choose()

    def _fixed(self, entity: str) -> Key | None:
        """Versions lie under their parent's key, in the order of their numbers."""
        version = self.roles.versions.get(entity)
        if version is None:
            return None
        parent = (self.schema.canonical(Ref(entity, name)) for name in version.link.key.columns)
        return Key(tuple(parent), (Ref(entity, version.column),))

    def _is_checked(self, entity: str) -> bool:
        """Whether the source's key is one that two rows could try to have."""
        key = self.schema.table(entity).primary_key
        columns = [self.schema.column(Ref(entity, name)) for name in key]
        is_generated = any(column is not None and column.is_auto_increment for column in columns)
        return bool(key) and not is_generated and entity not in self.settings.natural_keys

    def identities(self, entity: str) -> list[list[Ref]]:
        """The sets of columns that tell one item from all others."""
        stated = self.settings.natural_keys.get(entity)
        if stated:
            return [[Ref(entity, name) for name in stated]]
        found = []
        for position, key in enumerate(self.schema.unique_keys(entity)):
            columns = [self.schema.column(Ref(entity, name)) for name in key]
            if position and any(column is None or column.is_nullable for column in columns):
                continue
            found.append(
                list(dict.fromkeys(self.schema.canonical(Ref(entity, name)) for name in key))
            )
        return found or [self._every(entity)]

    def _every(self, entity: str) -> list[Ref]:
        columns = self.schema.table(entity).columns
        return [self.schema.canonical(Ref(entity, column.name)) for column in columns]

    def _is_identified(self, entity: str) -> bool:
        """Whether less than all columns tells a row from the others."""
        has_key = bool(self.schema.table(entity).primary_key)
        return has_key or self.identities(entity) != [self._every(entity)]

    def sources(self, entity: str) -> list[str]:
        """The tables whose rows become items of an entity: itself and its twins."""
        return [entity, *(name for name, first in self.roles.twins.items() if first == entity)]

    def ordered(self, entity: str) -> tuple[Ref, ...]:
        """Columns that patterns sort or compare by: as text, their numbers are padded."""
        version = self.roles.versions.get(entity)
        own = (Ref(entity, version.column),) if version else ()
        return (*own, *(ref for need in self.needs.of(entity) for ref in need.order))

    def latest_only(self, entity: str) -> set[str]:
        """Indexes that lead to the latest version, and hold no others."""
        return {
            index.name
            for index in self.plans[entity].indexes
            if index.needs and all(need.is_latest for need in index.needs)
        }

    def title(self, entity: str) -> str:
        version = self.roles.versions.get(entity)
        return version.parent if version else entity

    # How hot a key is.

    def shards(self, entity: str, refs: tuple[Ref, ...]) -> tuple[int, str]:
        """How many keys one partition key must become, with the reason."""
        share, which = self._top_share(entity, refs)
        # A transaction, for versions and unique values, doubles what an item costs.
        units = math.ceil(self.volumes.row_bytes(entity) / KB) * TRANSACTION_FACTOR
        load = (
            share
            * units
            * sum(write.rate * write.pattern.items for write in self.needs.writes_of(entity))
        )
        if load <= PARTITION_WRITE_UNITS:
            return 1, ""
        count = math.ceil(load / (PARTITION_WRITE_UNITS * SHARD_LOAD))
        return count, (
            f"Write sharding over {count} keys: {which} gets {load:,.0f} write units a second, and"
            f" a partition takes {PARTITION_WRITE_UNITS:,}."
        )

    def _top_share(self, entity: str, refs: tuple[Ref, ...]) -> tuple[float, str]:
        columns = [self.drafter.resolve(entity, ref)[0] for ref in refs]
        names = [ref.column for ref in columns]
        if all(self.volumes.kind(ref) in DATES for ref in columns):
            return 1.0, f"the current {' and '.join(names)}"
        if any(ref.table != entity for ref in columns):
            return 0.0, ""
        skew = self.volumes.skew(entity, names)
        return (skew.top_share if skew else 0.0), f"the most frequent {' and '.join(names)}"

    # What is said about the whole.

    def choices(self) -> list[str]:
        roles = self.roles
        found = list(roles.passed.values())
        for child, version in roles.versions.items():
            found.append(
                f"Version control: {version.parent} and {child} are one collection, where version 0"
                " is a copy of the latest, so that it is one GetItem away without knowing its"
                " number."
            )
        for surrogate, natural in self.schema.natural.items():
            found.append(
                f"{natural} is the key instead of {surrogate}: it is unique, and what is asked for."
            )
        found += [f"{one.why} ({table})" for table, one in roles.collected.items()]
        found += list(roles.embedded.values())
        for child, link in roles.merged.items():
            found.append(f"{child} is part of {link.parent}'s items: it is one-to-one with it.")
        for table, link in roles.folded.items():
            found.append(
                f"{table} has no items of its own: its columns are in every item of {link.child},"
                " no pattern writes it, and one of these items gives its details."
            )
        for table, first in roles.twins.items():
            found.append(f"{table} has the columns of {first}: both become items of one table.")
        for plan in self.plans.values():
            found += plan.advice
        return found

    def risks(self) -> list[str]:
        found = [f"{name!r} is not served: {why}." for name, why in self.needs.unserved.items()]
        for table, link in self.roles.folded.items():
            found.append(
                f"A row of {table} that no row of {link.child} refers to has no item, and a change"
                f" of one must be written to all items that hold it."
            )
        for table in self.roles.embedded:
            found.append(f"A row of {table} that nothing refers to is not carried over.")
        for entity in self.entities:
            if not self._is_identified(entity):
                found.append(
                    f"{entity} has no primary key: all its columns together are the key, and equal"
                    " rows become one item; name a key in [model.natural_keys], or add one."
                )
            version = self.roles.versions.get(entity)
            if version is not None:
                found.append(f"A row of {version.parent} without a version has no item.")
                measured = self.volumes.column(Ref(entity, version.column))
                if measured is not None and (measured.least or "1").startswith(("0", "-")):
                    found.append(
                        f"{Ref(entity, version.column)} begins at {measured.least}: version 0 is"
                        " where the copy of the latest lies; count from 1 first."
                    )
        for entity, plan in self.plans.items():
            for key in (plan.base.partition, plan.base.sort):
                refs = [self.drafter.resolve(entity, ref)[0] for ref in key]
                # A NULL beside other values is a part of the key like any other.
                if refs and all(map(self._may_be_null, refs)):
                    found.append(
                        f"{', '.join(map(str, refs))} may be NULL in the source, and a key of"
                        f" {entity} is made of {'it' if len(refs) == 1 else 'them alone'}: a row"
                        f" without {'it' if len(refs) == 1 else 'any'} has no item."
                    )
        for served in (one for plan in self.plans.values() for one in plan.served):
            for remark in served.need.pattern.description.split("; "):
                if remark.startswith(KEY_MUST_HOLD):
                    found.append(f"{served.need.pattern.name!r} finds nothing else: {remark}.")
            if served.need.pattern.is_consistent and served.index and served.index[0] == "G":
                found.append(
                    f"{served.need.pattern.name!r} asks for consistent reads, which a global index"
                    f" ({served.index}) does not have."
                )
        return found

    def _may_be_null(self, ref: Ref) -> bool:
        column = self.schema.column(ref)
        return column is not None and column.is_nullable

    def left_out(self, drafts: list[Draft], placed: set[Ref]) -> list[LeftOut]:
        found: dict[Ref, str] = {}
        for draft in drafts:
            for ref, why in draft.left_out.items():
                found.setdefault(ref, why)
        same = {self.schema.origin(ref) for ref in placed}
        result = []
        for table in self.volumes.inventory.tables:
            if table.name not in self.schema.tables:
                why = "excluded in [model]" if table.columns else "it has no columns"
                result.append(LeftOut(column=f"{table.name}.*", why=why))
                continue
            for column in table.columns:
                ref = Ref(table.name, column.name)
                if ref in placed or self.schema.origin(ref) in same:
                    continue
                why = found.get(ref) or found.get(self._first(ref)) or self._reason(ref)
                result.append(LeftOut(column=str(ref), why=why))
        return result

    def _first(self, ref: Ref) -> Ref:
        return Ref(self.roles.twins.get(ref.table, ref.table), ref.column)

    def _reason(self, ref: Ref) -> str:
        if ref.table in self.roles.passed:
            key = self.schema.table(ref.table).primary_key
            gone = "its key is not needed any more" if ref.column in key else "no pattern reads it"
            return f"{ref.table} only connects other tables, and {gone}"
        natural = self.schema.natural.get(ref)
        if natural is not None:
            return f"a surrogate key; {natural.column} stands for it"
        link = self.schema.link_of(ref)
        target = Ref(link.parent, link.key.referenced_columns[0]) if link else None
        if target in self.schema.natural:
            return f"{self.schema.natural[target]}, which it refers to, is kept instead"
        if link is not None:
            return f"the reference to {link.parent} is where the item lies"
        if ref.table in self.roles.collected:
            owner = self.roles.collected[ref.table].owner
            return f"the generated number of a row that is a member of {owner}'s item"
        if ref.table in self.roles.embedded:
            return f"no pattern reads it, and {ref.table} has no items of its own"
        return "no item holds it"

    def unique(self) -> list[Unique]:
        """What becomes of every unique constraint of the tables that have items."""
        found = []
        for entity in self.entities:
            base = set(self.plans[entity].base.columns)
            for source in self.sources(entity):
                for key in self.schema.unique_keys(source):
                    found.append(self._unique(source, key, base))
            version = self.roles.versions.get(entity)
            for key in self.schema.unique_keys(version.parent) if version else []:
                # Version 0 has the parent's key and nothing else.
                first = base - {Ref(entity, version.column)} if version else base
                found.append(self._unique(self.title(entity), key, first))
        return found

    def _unique(self, source: str, key: list[str], base: set[Ref]) -> Unique:
        refs = {self.schema.canonical(Ref(source, name)) for name in key}
        refs = {self._first(ref) for ref in refs}
        columns = [self.schema.column(Ref(source, name)) for name in key]
        is_generated = any(column is not None and column.is_auto_increment for column in columns)
        name = unique_name(source, key)
        if refs >= base:
            return Unique(
                table=source,
                columns=key,
                kept_by="key",
                why="A put with attribute_not_exists on the key refuses a second one.",
            )
        if is_generated:
            return Unique(
                table=source,
                columns=key,
                kept_by="generated",
                why="The number was generated; new items take an identifier that cannot repeat.",
            )
        if name in self.settings.unique_by_application:
            return Unique(table=source, columns=key, kept_by="application", why="[model] says so.")
        return Unique(
            table=source,
            columns=key,
            kept_by="item",
            why=(
                "An item whose key is the value is put in the same transaction, on condition that"
                " it is not there; it costs a write more, and the transaction doubles both."
            ),
        )

    def expiring(self, table: str, entity: str) -> list[Access]:
        """Patterns that delete what is old: the service does it."""
        sources = self.sources(entity)
        return [
            Access(
                pattern=pattern.name,
                request="TTL",
                table=table,
                entity=pattern.table,
                requests=0,
                why="The service deletes expired items by itself, without write units.",
            )
            for pattern in self.needs.expiring
            if pattern.table in sources
        ]
