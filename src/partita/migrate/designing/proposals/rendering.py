"""Keys, indexes and requests as a model file writes them, the same way for both designs."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from partita.migrate.designing.naming import of_table, styled
from partita.migrate.designing.proposals.drafts import Draft
from partita.migrate.designing.proposals.groundwork import Groundwork
from partita.migrate.designing.proposals.keys import IndexPlan, Key, Served
from partita.migrate.designing.proposals.needs import Write
from partita.migrate.model.design import (
    Access,
    Attribute,
    Condition,
    Entity,
    KeyAttribute,
    KeyType,
    RequestName,
    SecondaryIndex,
    Unique,
    columns_of,
)
from partita.migrate.model.templates import SEPARATOR, TemplateField, template_fields
from partita.migrate.understanding.schema.column_refs import Ref

LATEST = "0"
KEY_TYPES = ("S", "N", "B")
AFTER_SEPARATOR = chr(ord(SEPARATOR) + 1)
"""Ends a range: keys go on behind the last value with a separator, and belong to it."""


class RenderedKey(Struct, frozen=True):
    """A key with the attributes that hold it."""

    key: Key
    partition: Attribute
    sort: Attribute | None = None
    latest: str = LATEST
    """The sort key of the item that copies the latest version."""
    why: str = ""

    @property
    def attributes(self) -> list[Attribute]:
        return [self.partition, *([self.sort] if self.sort else [])]


def key_attribute(attribute: Attribute) -> KeyAttribute:
    kind: KeyType = attribute.type if attribute.type in KEY_TYPES else "S"  # type: ignore[assignment]
    return KeyAttribute(name=attribute.name, type=kind)


def value_of(attribute: Attribute) -> str:
    """What a caller passes for an attribute."""
    return attribute.constant or attribute.template or f"{{{attribute.name}}}"


class Renderer:
    """Attributes of keys: a column as it is, or several in one text."""

    def __init__(self, ground: Groundwork) -> None:
        self.ground = ground
        self.drafter = ground.drafter

    def plain(self, draft: Draft, entity: str, ref: Ref) -> Attribute | None:
        """The attribute that already holds a column, if a key can be of its type."""
        column, through = self.drafter.resolve(entity, ref)
        for attribute in draft.attributes.values():
            is_same = attribute.column == str(column) and attribute.through == through
            if is_same and attribute.type in KEY_TYPES:
                return attribute
        return None

    def composed(
        self,
        entity: str,
        name: str,
        parts: list[str | Ref],
        *,
        shards: int = 1,
    ) -> Attribute:
        """Texts and columns, separated; numbers that patterns sort by are padded."""
        ordered = self.ground.ordered(entity)
        texts: list[str] = []
        through: list[str] = []
        for part in parts:
            if isinstance(part, Ref):
                text, way = self.drafter.field(entity, part, is_ordered=part in ordered)
                texts.append(text)
                through += [step for step in way if step not in through]
            else:
                texts.append(part)
        if shards > 1:
            texts.append("{shard}")
        return Attribute(
            name=name,
            type="S",
            template=SEPARATOR.join(texts),
            through=through,
            shards=shards,
        )

    def constants(self, entity: str, source: str) -> list[str]:
        """What tells the rows of one source from those of its twins."""
        stated = self.ground.settings.constants.get(source)
        if stated:
            return list(stated.values())
        sources = self.ground.sources(entity)
        if len(sources) == 1:
            return []
        return [source[len(common_start(sources)) :].strip("_") or source]

    def for_source(self, attribute: Attribute, entity: str, source: str) -> Attribute:
        """The same attribute of a twin's rows."""
        if source == entity:
            return attribute

        def renamed(name: str | None) -> str | None:
            ref = Ref.parse(name or "")
            return str(Ref(source, ref.column)) if ref.table == entity else name

        expires = renamed(attribute.expires)
        seconds = self.ground.settings.expire.get(expires or "", attribute.after_seconds)
        return replace(
            attribute, column=renamed(attribute.column), expires=expires, after_seconds=seconds
        )

    def attribute_name(self, draft: Draft, entity: str, ref: Ref) -> str:
        found = self.plain(draft, entity, ref)
        if found is not None:
            return found.name
        own = (entity, self.ground.title(entity))
        ref = Ref(ref.table, ref.column.replace(":", "_"))
        name = ref.column if ref.table in own else of_table(ref.table, ref.column)
        return styled(name, self.ground.settings.names)

    def index(
        self, plan: IndexPlan, rendered: RenderedKey, entities: list[Entity], keys: set[str]
    ) -> SecondaryIndex:
        include = self._projected(plan, entities, keys | {one.name for one in rendered.attributes})
        why = " ".join(filter(None, [plan.why, rendered.why, self._sparse(entities, rendered)]))
        return SecondaryIndex(
            name=plan.name,
            kind=plan.kind,
            partition_key=key_attribute(rendered.partition),
            sort_key=key_attribute(rendered.sort) if rendered.sort else None,
            projection="ALL" if include is None else ("INCLUDE" if include else "KEYS_ONLY"),
            include=include or [],
            why=why,
        )

    def _projected(
        self, plan: IndexPlan, entities: list[Entity], keys: set[str]
    ) -> list[str] | None:
        """Only what is read through the index, when every pattern says what it reads."""
        if not plan.needs or not all(need.pattern.columns for need in plan.needs):
            return None
        wanted = {Ref.parse(name) for need in plan.needs for name in need.pattern.columns}
        include = {
            attribute.name
            for entity in entities
            for attribute in entity.attributes
            if set(columns_of(entity, attribute)) & wanted
        }
        names = {attribute.name for entity in entities for attribute in entity.attributes}
        return None if names <= include | keys else sorted(include - keys)

    def _sparse(self, entities: list[Entity], rendered: RenderedKey) -> str:
        shares = [
            self.ground.volumes.absent_share(entity, attribute)
            for entity in entities[:1]
            for attribute in rendered.attributes
        ]
        share = max(shares, default=0.0)
        if share < 0.5:
            return ""
        return f"A sparse index: {share:.0%} of the rows have no value and are not in it."

    # Requests.

    def read(
        self,
        served: Served,
        table: str,
        rendered: RenderedKey,
        entity: str,
        draft: Draft,
        sort_start: str = "",
    ) -> Access:
        need, found = served.need, served.match
        is_base = served.index is None
        is_get = is_base and (found.is_whole or need.is_latest)
        keys = [Condition(attribute=rendered.partition.name, value=value_of(rendered.partition))]
        keys += self._sort_condition(served, rendered, sort_start)
        shards = rendered.partition.shards
        return Access(
            pattern=need.pattern.name,
            request="GetItem" if is_get else "Query",
            table=table,
            index=served.index,
            entity=entity,
            key=keys,
            filter=[
                Condition(
                    attribute=self.attribute_name(draft, need.entity, ref),
                    value=f"{{{ref.column}}}",
                )
                for ref in found.filtered
            ],
            is_descending=need.pattern.is_descending and not is_get,
            limit=self._limit(served, is_get),
            requests=shards,
            why=self._read_why(served, shards),
        )

    def _limit(self, served: Served, is_get: bool) -> int | None:
        # DynamoDB counts before it filters: with a filter a limit would return too few.
        if is_get or served.match.filtered or served.need.pattern.filters:
            return None
        return 1 if served.need.is_one else served.need.pattern.limit

    def _read_why(self, served: Served, shards: int) -> str:
        need = served.need
        if shards > 1:
            return f"One query for each of {shards} shards, at the same time."
        if need.pattern.filters and not served.match.filtered:
            names = " and ".join(Ref.parse(name).column for name in need.pattern.filters)
            return f"{names} is tested after reading: no key can."
        if served.match.filtered:
            names = " and ".join(ref.column for ref in served.match.filtered)
            return f"Filtered by {names}: reading more costs less than writing one more index."
        if need.pattern.hierarchy and need.is_beside:
            return "All below the row, whose item tells its own path."
        if need.is_latest:
            return "The latest version is also kept as version 0."
        if need.is_one:
            return f"Every item holds the details of its {need.pattern.table}: one is enough."
        return ""

    def _sort_condition(self, served: Served, rendered: RenderedKey, start: str) -> list[Condition]:
        need, found, sort = served.need, served.match, rendered.sort
        if sort is None:
            return []
        if need.is_latest and served.index is None:
            return [Condition(attribute=sort.name, value=rendered.latest)]
        if found.is_whole:
            return [Condition(attribute=sort.name, value=value_of(sort))]
        if need.is_one:
            return []
        if need.pattern.hierarchy and sort.template:
            return [Condition(attribute=sort.name, comparison="begins_with", value=sort.template)]
        if sort.template is None:
            return self._plain_condition(served, sort)
        if need.pattern.range and need.order:
            lead, part = self._before(sort.template, found.given)
            is_last = part == template_fields(sort.template)[-1]
            return [between(sort.name, lead, part, end="" if is_last else AFTER_SEPARATOR)]
        if found.given:
            start, _ = self._before(sort.template, found.given)
        if not start:
            return []
        return [Condition(attribute=sort.name, comparison="begins_with", value=start)]

    def _plain_condition(self, served: Served, sort: Attribute) -> list[Condition]:
        need, found = served.need, served.match
        if found.given:
            return [Condition(attribute=sort.name, value=value_of(sort))]
        if need.pattern.range and need.order:
            return [between(sort.name, "", TemplateField(sort.name, ""))]
        is_versions = need.entity in self.ground.roles.versions and served.index is None
        if is_versions:
            return [Condition(attribute=sort.name, comparison=">", value=LATEST)]
        return []

    def _before(self, template: str, given: int) -> tuple[str, TemplateField]:
        """The beginning of a sort key as far as it is known, and the field that follows."""
        part = template_fields(template)[given]
        text = f"{{{part.name}:{part.format}}}" if part.format else f"{{{part.name}}}"
        return template[: template.index(text)], part

    def write(
        self,
        write: Write,
        table: str,
        rendered: RenderedKey,
        entity: str,
        guards: list[Unique],
        copies: float,
    ) -> Access:
        base = set(rendered.key.columns)
        is_insert = write.pattern.operation == "insert"
        is_known = is_insert or base <= write.known
        is_guarded = any(self._touches(write, guard) for guard in guards)
        is_versioned = write.entity in self.ground.roles.versions
        request: RequestName = "TransactWriteItems"
        if not (is_guarded or is_versioned):
            by_operation: dict[str, RequestName] = {
                "insert": "PutItem",
                "update": "UpdateItem",
                "delete": "DeleteItem",
            }
            request = by_operation[write.pattern.operation]
        whys = []
        if is_versioned:
            whys.append("A new version and its copy as version 0 are written together.")
        if is_guarded:
            whys.append("The item that keeps a value unique is written in the same transaction.")
        if not is_known:
            whys.append("The pattern does not know the whole key: a query finds the items first.")
        if copies:
            whys.append(
                f"What is copied into other items is changed there too, {copies:,.0f} times."
            )
        return Access(
            pattern=write.pattern.name,
            request=request,
            table=table,
            entity=entity,
            key=[Condition(attribute=one.name, value=value_of(one)) for one in rendered.attributes],
            requests=(1 if is_known else 2) + round(copies),
            why=" ".join(whys),
        )

    def _touches(self, write: Write, guard: Unique) -> bool:
        if guard.table != write.pattern.table or guard.kept_by != "item":
            return False
        changed = {ref.column for ref in write.changed}
        is_update = write.pattern.operation == "update"
        return not is_update or not changed or bool(changed & set(guard.columns))

    def copies(self, write: Write, drafts: dict[str, Draft]) -> float:
        """How many other items hold what an update changes."""
        if write.pattern.operation != "update":
            return 0.0
        table = write.pattern.table
        total = 0.0
        for entity, draft in drafts.items():
            if entity == write.entity:
                continue
            held = {
                ref
                for ref in draft.attributes
                if ref.table == table and (not write.changed or ref in write.changed)
            }
            path = self.ground.schema.path_up(entity, table) if held else None
            if path:
                count = 1.0
                for link in path:
                    count *= self.ground.volumes.rows_per_value(
                        link.child, link.key.columns, link.parent
                    )
                total += count
        return total


def between(name: str, lead: str, part: TemplateField, end: str = "") -> Condition:
    shape = f":{part.format}" if part.format else ""
    first, last = (f"{lead}{{{part.name}.{bound}{shape}}}" for bound in ("from", "to"))
    return Condition(attribute=name, comparison="between", value=f"{first} and {last}{end}")


def common_start(names: list[str]) -> str:
    """The words that all names begin with, as the first one writes them."""
    shared = 0
    for letters in zip(*names, strict=False):
        if len(set(letters)) > 1:
            break
        shared += 1
    start = names[0][:shared]
    # Half a word is none: page_hit_h of page_hit_hour and page_hit_hits.
    return start if start.endswith("_") else start[: start.rfind("_") + 1] or start
