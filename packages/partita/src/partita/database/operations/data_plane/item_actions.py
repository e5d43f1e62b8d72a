"""The four actions on one item: Put, Update, Delete and ConditionCheck.

PutItem, UpdateItem, DeleteItem, BatchWriteItem and TransactWriteItems are made of them. An action
is built from a request without its table, and then carried out on the table: compute the storage
key, read the old item, check the condition, compute the new item, write it.
"""

from __future__ import annotations

from typing import Final

from partita.database.expressions.condition import CompiledCondition
from partita.database.expressions.name_resolution import Values
from partita.database.expressions.update import ITEM_TOO_LARGE
from partita.database.expressions.update import CompiledUpdate as UpdateExpression
from partita.database.item.attribute_values import Item
from partita.database.item.item_limits import check_bounds
from partita.database.item.item_sizes import check_item_size
from partita.database.operations.data_plane.expression_parameters import NOTHING, RequestExpressions
from partita.database.operations.operation_context import Request, WriteContext
from partita.database.tables import table_layout
from partita.database.tables.definition.key_rules import (
    check_index_key_types,
    check_item,
    check_key,
    check_scalar_paths,
    check_updated_index_keys,
)
from partita.database.tables.definition.table_schema import Table
from partita.database.tables.read_path import load
from partita.database.tables.stored_item import StoredItem, pack
from partita.database.tables.write_path import WriteEffect, write_item
from partita.errors import (
    INVALID,
    ConditionalCheckFailedException,
    KeyTypeError,
    TransactionConflictException,
)
from partita.foundation.service_limits import ITEM_BYTES_MAX, NESTING_LEVELS_MAX

CONDITION_FAILED: Final = "The conditional request failed"
CONFLICT: Final = "Transaction is ongoing for the item"


class ItemAction:
    """An action on one item, with its condition; actions of a batch have none."""

    __slots__ = ("condition", "shows_item_on_failure", "table_name", "values")

    def __init__(
        self, table_name: str, expressions: RequestExpressions, shows_item_on_failure: bool = False
    ) -> None:
        self.table_name = table_name
        self.condition: CompiledCondition | None = expressions.condition
        self.values: Values = expressions.values
        self.shows_item_on_failure = shows_item_on_failure

    def key(self, table: Table) -> bytes:
        """Returns the item's storage key; refuses keys and paths that do not fit the schema."""
        key = self.check_keys(table)
        if self.condition:
            check_scalar_paths(table, self.condition.paths)
        return table_layout.item_key(table, key)

    def check_keys(self, table: Table) -> Item:
        """Returns the key attributes, perhaps among others, after checking them."""
        raise NotImplementedError

    def new(self, table: Table, old: StoredItem | None) -> StoredItem | None:
        """Returns the item after the action, or None if it does not exist then."""
        raise NotImplementedError

    def check_condition(self, old: StoredItem | None) -> None:
        if self.condition and not self.condition.holds(old.item if old else None, self.values):
            shown = {"Item": old.item} if old and self.shows_item_on_failure else {}
            raise ConditionalCheckFailedException(CONDITION_FAILED, **shown)


class PutAction(ItemAction):
    """Replaces the whole item."""

    __slots__ = ("in_batch", "item")

    def __init__(
        self,
        table_name: str,
        item: StoredItem,
        expressions: RequestExpressions = NOTHING,
        shows_item_on_failure: bool = False,
        in_batch: bool = False,
    ) -> None:
        super().__init__(table_name, expressions, shows_item_on_failure)
        self.item = item
        self.in_batch = in_batch

    def check_keys(self, table: Table) -> Item:
        check_item(table, self.item.item, in_batch=self.in_batch)
        return self.item.item

    def new(self, table: Table, old: StoredItem | None) -> StoredItem | None:
        return self.item


class KeyedAction(ItemAction):
    """An action that names its item by a Key parameter."""

    __slots__ = ("item_key",)

    def __init__(
        self,
        table_name: str,
        item_key: Item,
        expressions: RequestExpressions = NOTHING,
        shows_item_on_failure: bool = False,
    ) -> None:
        super().__init__(table_name, expressions, shows_item_on_failure)
        self.item_key = item_key

    def check_keys(self, table: Table) -> Item:
        check_key(table, self.item_key)
        return self.item_key


class DeleteAction(KeyedAction):
    """Deletes the item, which need not exist."""

    def new(self, table: Table, old: StoredItem | None) -> StoredItem | None:
        return None


class ConditionCheck(KeyedAction):
    """Changes nothing, but cancels its transaction if its condition is false."""

    def new(self, table: Table, old: StoredItem | None) -> StoredItem | None:
        return old


class UpdateAction(KeyedAction):
    """Changes attributes of the item, or creates it with its key and these attributes."""

    __slots__ = ("update",)

    def __init__(
        self,
        table_name: str,
        item_key: Item,
        expressions: RequestExpressions = NOTHING,
        shows_item_on_failure: bool = False,
    ) -> None:
        super().__init__(table_name, item_key, expressions, shows_item_on_failure)
        self.update: UpdateExpression | None = expressions.update

    def check_keys(self, table: Table) -> Item:
        check_key(table, self.item_key)
        if self.update:
            for name in table.key_names:
                if name in self.update.attributes:
                    raise KeyTypeError(
                        f"{INVALID}Cannot update attribute {name}. "
                        "This attribute is part of the key"
                    )
            if table.indexes:
                check_index_key_types(table, self.update.known_types(self.values))
            check_scalar_paths(table, self.update.paths)
            check_scalar_paths(table, self.update.operand_paths)
        return self.item_key

    def new(self, table: Table, old: StoredItem | None) -> StoredItem | None:
        if self.update is None:
            return old or pack(self.item_key)
        if old is None and self.update.only_removes:
            # REMOVE does not create an item that does not exist (ScyllaDB Alternator's tests, run
            # on AWS).
            return None
        item = self.update.apply(old.item if old else self.item_key, self.values)
        if table.indexes:
            check_updated_index_keys(table, item)
        copies = 1 + 2 * len(self.update.operand_paths)
        if old and old.size * copies > ITEM_BYTES_MAX:
            # Copies of copies can grow exponentially: check the size before encoding them.
            check_bounds(item, ITEM_TOO_LARGE)
        new = pack(item)
        check_item_size(new.size, ITEM_TOO_LARGE)
        if new.body.count(b'{"M":') + new.body.count(b'{"L":') >= NESTING_LEVELS_MAX:
            # There are enough maps and lists that they might be nested too deep.
            check_bounds(item, ITEM_TOO_LARGE)
        return new


def shows_item_on_failure(request: Request) -> bool:
    return request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"


def carry_out(context: WriteContext, table: Table, action: ItemAction) -> WriteEffect:
    """Carry out one action, unless its condition fails or a transaction holds the item.

    This does not charge for it: operations call `charges.carry_out`, which does.
    """
    key = action.key(table)
    if context.is_held(key):
        raise TransactionConflictException(CONFLICT)
    old = load(context.write_batch, key)
    action.check_condition(old)
    return write_item(context.write_batch, table, key, old, action.new(table, old))
