"""The attributes of one type of item, with their origins and names."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from partita.limits import ITEM_BYTES_MAX
from partita.migrate.designing.naming import of_table, role, styled
from partita.migrate.designing.proposals.needs import Need, Needs
from partita.migrate.designing.proposals.roles import Collected, Roles
from partita.migrate.designing.settings import ModelSettings
from partita.migrate.model.design import Attribute, AttributeType
from partita.migrate.model.templates import PATH, ROOT
from partita.migrate.model.volumes import Volumes
from partita.migrate.understanding.schema.column_refs import Ref
from partita.migrate.understanding.schema.graph import SchemaGraph
from partita.migrate.understanding.schema.inventory import ColumnKind
from partita.migrate.understanding.schema.join_paths import Link, self_reference
from partita.migrate.understanding.schema.words import name_parts, singular

TYPES: dict[ColumnKind, AttributeType] = {
    "string": "S",
    "integer": "N",
    "decimal": "N",
    "float": "N",
    "boolean": "BOOL",
    "date": "S",
    "time": "S",
    "datetime": "S",
    "binary": "B",
    "json": "M",
    "enum": "S",
    "set": "SS",
    "uuid": "S",
    "array": "L",
    "geometry": "B",
    "other": "S",
}
"""The usual one of `values.MAPPING`."""

NUMBERS = ("integer", "decimal")


class Draft(Struct):
    """What the items of an entity hold, before keys are written down."""

    attributes: dict[Ref, Attribute] = field(default_factory=dict)
    extras: list[Attribute] = field(default_factory=list)
    """Sets, lists, expiry: what is no single column."""
    left_out: dict[Ref, str] = field(default_factory=dict)

    def names(self) -> set[str]:
        return {one.name for one in [*self.attributes.values(), *self.extras]}


class Drafter:
    def __init__(
        self,
        schema: SchemaGraph,
        roles: Roles,
        volumes: Volumes,
        settings: ModelSettings,
        needs: Needs,
    ) -> None:
        self.schema = schema
        self.roles = roles
        self.volumes = volumes
        self.settings = settings
        self.needs = needs

    def draft(
        self,
        entity: str,
        *,
        is_latest: bool = False,
        together: Iterable[str] = (),
        by_index: Iterable[str] = (),
    ) -> Draft:
        """`together`: tables in the same collection, whose columns need no copy except for the
        patterns that come `by_index`."""
        draft = Draft()
        version = self.roles.versions.get(entity)
        if version is not None:
            # The key first and the rest last, so that both kinds of items agree on all names.
            self._add_above(draft, entity, version.parent, self._version_key(entity))
        self._add_own(draft, entity)
        if version is not None:
            self._add_above(draft, entity, version.parent, self._version_columns(entity, is_latest))
        for table in self._folded_into(entity):
            self._add_above(draft, entity, table, None)
        for need in self.needs.of(entity):
            for table in need.wants:
                is_beside = table in together and need.pattern.name not in by_index
                is_own = table == entity or (version is not None and table == version.parent)
                if not is_beside and not is_own:
                    self._add_wanted(draft, entity, table, need)
        for child, link in self.roles.merged.items():
            if link.parent in self._own_tables(entity):
                self._add_merged(draft, entity, child)
        self._add_collected(draft, entity, is_latest or version is None)
        self._add_expiry(draft, entity)
        return draft

    # What is in an item.

    def _add_own(self, draft: Draft, entity: str) -> None:
        for column in self.schema.table(entity).columns:
            ref = Ref(entity, column.name)
            reason = self._reason_to_leave_out(ref)
            if reason:
                draft.left_out[ref] = reason
            else:
                self._add(draft, entity, ref)

    def _reason_to_leave_out(self, ref: Ref) -> str:
        natural = self.schema.natural.get(ref)
        if natural is not None:
            return (
                f"a surrogate key that no pattern asks for; {natural.column} identifies the row and"
                " stands for it wherever it is referred to"
            )
        link = self.schema.link_of(ref)
        if link is not None and link.parent in self.roles.passed:
            return f"{link.parent}, which it refers to, only connects other tables"
        if self.settings.natural_keys.get(ref.table) and self._is_surrogate(ref):
            return "a generated number that no pattern asks for; the stated natural key is used"
        measured = self.volumes.column(ref)
        if measured is not None and measured.bytes_max > ITEM_BYTES_MAX:
            return (
                f"its largest value has {measured.bytes_max:,} bytes, more than an item may have;"
                " keep it in an object store"
            )
        return ""

    def _is_surrogate(self, ref: Ref) -> bool:
        table = self.schema.table(ref.table)
        column = self.schema.column(ref)
        return table.primary_key == [ref.column] and column is not None and column.is_auto_increment

    def _folded_into(self, entity: str) -> list[str]:
        found: list[str] = []
        for table, link in self.roles.folded.items():
            if link.child == entity:
                found += [table, *self._folded_into(table)]
        return found

    def _add_wanted(self, draft: Draft, entity: str, table: str, need: Need) -> None:
        if table in self.roles.passed or table in self.roles.collected:
            return
        path = self.schema.path_up(entity, table)
        if not path:
            return
        listed = [Ref.parse(name) for name in need.pattern.columns]
        only = {ref.column for ref in listed if ref.table == table} if listed else None
        for link in self.schema.parents(entity):
            is_named = bool(set(link.columns) & set(need.pattern.through))
            if link.parent == table and is_named and [link] != path:
                self._add_other_row(draft, link, only)
                return
        self._add_above(draft, entity, table, only)

    def _add_other_row(self, draft: Draft, link: Link, only: set[str] | None) -> None:
        """Of a table that is referred to twice: columns of the row that is not the usual one."""
        for column in self.schema.table(link.parent).columns:
            ref = Ref(link.parent, column.name)
            is_key = column.name in link.key.referenced_columns
            is_wanted = only is None or column.name in only
            if is_key or not is_wanted or self._reason_to_leave_out(ref):
                continue
            name = styled(f"{role(link.key.columns[0])}_{column.name}", self.settings.names)
            held = Attribute(
                name=name, type=self.type_of(ref), column=str(ref), through=[link.upwards()]
            )
            if name not in draft.names():
                draft.extras.append(held)

    def _version_columns(self, entity: str, is_latest: bool) -> set[str] | None:
        """Of the parent: all with the latest, only what is read with every version."""
        version = self.roles.versions[entity]
        if is_latest:
            return None
        columns: set[str] = set()
        for need in self.needs.of(entity):
            if not need.is_latest and version.parent in need.wants:
                listed = [Ref.parse(name) for name in need.pattern.columns]
                if not listed:
                    return None
                columns |= {ref.column for ref in listed if ref.table == version.parent}
        return columns

    def _version_key(self, entity: str) -> set[str]:
        version = self.roles.versions[entity]
        key = [self.schema.canonical(Ref(entity, name)) for name in version.link.key.columns]
        return {ref.column for ref in key if ref.table == version.parent}

    def _add_above(self, draft: Draft, entity: str, table: str, only: set[str] | None) -> None:
        """Columns of a table that a row of the entity belongs to, copied."""
        own_keys = {
            self.schema.canonical(Ref(entity, column.name))
            for column in self.schema.table(entity).columns
        }
        for column in self.schema.table(table).columns:
            ref = Ref(table, column.name)
            is_known = self.schema.canonical(ref) in own_keys and table not in self._own_tables(
                entity
            )
            if is_known or (only is not None and column.name not in only):
                continue
            reason = self._reason_to_leave_out(ref)
            if reason:
                draft.left_out.setdefault(ref, reason)
            else:
                self._add(draft, entity, ref)

    def _add_merged(self, draft: Draft, entity: str, child: str) -> None:
        link = self.roles.merged[child]
        above = self.schema.path_up(entity, link.parent) or []
        for column in self.schema.table(child).columns:
            if column.name not in link.key.columns:
                ref = Ref(child, column.name)
                name = self._free_name(draft, entity, ref)
                through = [*(one.upwards() for one in above), link.downwards()]
                draft.attributes[ref] = Attribute(
                    name=name, type=self.type_of(ref), column=str(ref), through=through
                )

    def _add_collected(self, draft: Draft, entity: str, is_all: bool) -> None:
        for table, one in self.roles.collected.items():
            if one.owner not in self._own_tables(entity):
                continue
            if is_all or self._is_read_with_versions(entity, table, one):
                above = self.schema.path_up(entity, one.owner) or []
                draft.extras.append(
                    Attribute(
                        name=styled(one.name, self.settings.names),
                        type=one.type,
                        collect=[str(ref) for ref in one.columns],
                        through=[*(link.upwards() for link in above), *one.through],
                        why=one.why,
                    )
                )

    def _is_read_with_versions(self, entity: str, table: str, one: Collected) -> bool:
        named = {table, *(ref.table for ref in one.columns)}
        return any(
            named & set(need.pattern.joins) for need in self.needs.of(entity) if not need.is_latest
        )

    def _add_expiry(self, draft: Draft, entity: str) -> None:
        for name, seconds in self.settings.expire.items():
            ref = Ref.parse(name)
            if ref.table == entity:
                draft.extras.append(
                    Attribute(
                        name=self.settings.expire_name,
                        type="N",
                        expires=name,
                        after_seconds=seconds,
                        why="DynamoDB deletes the item when this second has passed, at no cost.",
                    )
                )

    # Columns, seen from an entity's row.

    def _own_tables(self, entity: str) -> set[str]:
        version = self.roles.versions.get(entity)
        return {entity, version.parent} if version else {entity}

    def resolve(self, entity: str, ref: Ref) -> tuple[Ref, list[str]]:
        """The column to read, and the foreign keys that lead to it from the entity's row."""
        if ref.table == entity:
            link = self.schema.link_of(ref)
            if link is not None:
                target = Ref(link.parent, link.key.referenced_columns[0])
                if target in self.schema.natural:
                    return self.schema.natural[target], [link.upwards()]
            return ref, []
        if ref not in self.schema.natural.values():
            for column in self.schema.table(entity).columns:
                if self.schema.canonical(Ref(entity, column.name)) == ref:
                    return Ref(entity, column.name), []
        path = self.schema.path_up(entity, ref.table) or []
        return ref, [link.upwards() for link in path]

    def _add(self, draft: Draft, entity: str, ref: Ref) -> None:
        column, through = self.resolve(entity, ref)
        known = self.schema.canonical(ref) if ref.table in self._own_tables(entity) else ref
        key = ref if known == ref or through == [] else known
        if self._is_repeated(draft, entity, ref, column):
            draft.left_out.setdefault(ref, f"{column}, which it refers to, is kept instead")
            return
        if column != ref and ref.table == entity:
            draft.left_out.setdefault(ref, f"{column}, which it refers to, is kept instead")
        if key in draft.attributes:
            return
        draft.attributes[key] = Attribute(
            name=self._free_name(draft, entity, ref, column),
            type=self.type_of(column),
            column=str(column),
            through=through,
        )

    def _is_repeated(self, draft: Draft, entity: str, ref: Ref, column: Ref) -> bool:
        """A foreign key to the parent that the item is a version of."""
        version = self.roles.versions.get(entity)
        is_link = version is not None and ref.column in version.link.key.columns
        held = {one.column for one in draft.attributes.values()}
        return is_link and ref.table == entity and str(column) in held

    def type_of(self, ref: Ref) -> AttributeType:
        return TYPES[self.volumes.kind(ref)]

    def _free_name(self, draft: Draft, entity: str, ref: Ref, column: Ref | None = None) -> str:
        chosen = self.settings.rename.get(str(ref))
        if chosen:
            return chosen
        name = ref.column
        if column is not None and column != ref and ref.table == entity:
            link = self.schema.link_of(ref)
            named = role(ref.column)
            is_plain = link is not None and name_parts(named) == name_parts(singular(link.parent))
            name = of_table(column.table, column.column) if is_plain else named
        elif ref.table not in self._own_tables(entity):
            name = of_table(ref.table, ref.column)
        styled_name = styled(name, self.settings.names)
        if styled_name in draft.names():
            styled_name = styled(of_table(ref.table, f"{ref.column}"), self.settings.names)
        number = 2
        while styled_name in draft.names():
            styled_name = f"{styled_name}{number}"
            number += 1
        return styled_name

    # Keys as text.

    def field(self, entity: str, ref: Ref, *, is_ordered: bool = False) -> tuple[str, list[str]]:
        """A template's field for a column, and the way to it."""
        part, _, of_tree = ref.column.rpartition(":")
        link = self_reference(self.schema.table(entity), part) if of_tree in (PATH, ROOT) else None
        if link is not None:
            key = Ref("", link.key.referenced_columns[0])
            return f"{{{key}:{of_tree}}}", [link.upwards()]
        column, through = self.resolve(entity, ref)
        name = str(Ref("", column.column) if column.table == entity else column)
        shape = self.settings.formats.get(str(ref)) or self.settings.formats.get(str(column)) or ""
        if is_ordered and not shape and self.volumes.kind(column) in NUMBERS:
            shape = f"0{self.volumes.padding(column)}"
        return (f"{{{name}:{shape}}}" if shape else f"{{{name}}}"), through
