"""ExecuteTransaction: up to 100 reads or writes of single items, all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from partita.database.expressions.name_resolution import Values
from partita.database.expressions.projection import Projection
from partita.database.item.attribute_values import Item
from partita.database.operations.data_plane.item_actions import ItemAction
from partita.database.operations.data_plane.transact_items import (
    NO_ITEM,
    NO_REASON,
    Reason,
    cancel_if_any,
    check_payload,
    read_transaction,
    write_transaction,
)
from partita.database.operations.operation_context import (
    DatabaseService,
    ReadContext,
    Request,
    WriteContext,
)
from partita.database.operations.partiql.execute_statement import action_of, bind, single_item
from partita.database.operations.partiql.language.bindings import read_parameters
from partita.database.operations.partiql.language.statement_compiler import (
    CompiledStatement,
    DeleteStatement,
    ExistsStatement,
    MisplacedExists,
    SelectStatement,
    UpdateStatement,
    is_write,
    refuse_non_statement,
)
from partita.database.operations.partiql.language.syntax.statement_parser import parse
from partita.database.operations.partiql.language.where_branches import RefusedRead
from partita.database.operations.response_members import answer, raw_list, raw_member
from partita.errors import KeyTypeError, ValidationException

MIXED_TRANSACTION = (
    "ExecuteTransaction API does not support both read and write operations in the same request."
)
NOT_IN_TRANSACTION = "Unsupported operation in transaction."
NO_INDEX_READS = "Reads on indices are not supported within transactions."
NO_INDEX_CHECKS = "Operations on indices are not supported in transactions"
NO_RETURNING = "RETURNING clause is not supported in ExecuteTransaction."


def only_reads(request: Request) -> bool:
    statements = request["TransactStatements"]
    return True not in {is_write(statement["Statement"]) for statement in statements}


def execute_writes(context: WriteContext, request: Request) -> bytes:
    requests = request["TransactStatements"]
    statements, values = _bound(context.service, requests)
    tables = [context.service.table(statement.table_name) for statement in statements]
    actions: list[ItemAction] = []
    with _cancellation(len(requests)) as attempt:
        for position, (statement, table) in enumerate(zip(statements, tables, strict=True)):
            with attempt(position):
                actions.append(action_of(statement, table, values[position], requests[position]))
    check_payload(actions)
    members = write_transaction(context, request, requests, tables, actions)
    return answer([raw_member("Responses", b"[]"), *members])


def execute_reads(context: ReadContext, request: Request) -> bytes:
    statements, values = _bound(context.service, request["TransactStatements"])
    tables = [context.service.table(statement.table_name) for statement in statements]
    reads: list[tuple[Item, Projection | None]] = []
    with _cancellation(len(statements)) as attempt:
        for position, (statement, table) in enumerate(zip(statements, tables, strict=True)):
            assert isinstance(statement, SelectStatement)
            with attempt(position):
                plan = single_item(statement, table, values[position], "ExecuteTransaction")
                reads.append((plan.key, statement.projection))
    items, members = read_transaction(context, request, tables, reads)
    responses = [NO_ITEM if item is None else answer([raw_member("Item", item)]) for item in items]
    return answer([*members, raw_member("Responses", raw_list(responses))])


def _bound(
    service: DatabaseService, requests: Sequence[Request]
) -> tuple[list[CompiledStatement], list[Values]]:
    """Returns the statements and their values, checked as far as possible without tables."""
    # Errors in parameters are reported without the position of the statement (recorded).
    parameters = [read_parameters(request.get("Parameters", ())) for request in requests]
    _check_kinds([request["Statement"] for request in requests])
    statements, values = [], []
    for position, request in enumerate(requests):
        with _located(position):
            statement, bound = bind(service, request["Statement"], parameters[position])
            _check_transactional(statement)
            statements.append(statement)
            values.append(bound)
    return statements, values


def _check_kinds(texts: Sequence[str]) -> None:
    """Refuse invalid statements, and a mix of reads and writes."""
    kinds = set()
    for position, text in enumerate(texts):
        with _located(position):
            node = parse(text)
        kind = is_write(text)
        if kind is None:
            error = refuse_non_statement(node)
            is_misplaced = isinstance(error, MisplacedExists)
            raise ValidationException(NOT_IN_TRANSACTION) if is_misplaced else error
        kinds.add(kind)
    if len(kinds) > 1:
        raise ValidationException(MIXED_TRANSACTION)


@contextmanager
def _cancellation(count: int) -> Iterator[Callable[[int], AbstractContextManager[None]]]:
    """Collect the errors of statements that do not fit their tables, then cancel if there are any.

    The caller wraps each statement in `with attempt(position)`.
    """
    reasons: list[Reason] = [NO_REASON] * count

    @contextmanager
    def attempt(position: int) -> Iterator[None]:
        try:
            yield
        except RefusedRead as error:
            raise _located_error(position, error) from None
        except KeyTypeError as error:
            reasons[position] = {"Code": "ValidationError", "Message": error.message}

    yield attempt
    cancel_if_any(reasons)


@contextmanager
def _located(position: int) -> Iterator[None]:
    """Add the position of a statement to its validation errors."""
    try:
        yield
    except ValidationException as error:
        raise _located_error(position, error) from None


def _located_error(position: int, error: ValidationException) -> ValidationException:
    return ValidationException(
        f"Validation failed in TransactStatements[{position}]: {error.message}"
    )


def _check_transactional(statement: CompiledStatement) -> None:
    if isinstance(statement, (UpdateStatement, DeleteStatement)) and statement.returning:
        raise ValidationException(NO_RETURNING)
    if isinstance(statement, SelectStatement) and statement.index_name is not None:
        raise ValidationException(
            NO_INDEX_CHECKS if isinstance(statement, ExistsStatement) else NO_INDEX_READS
        )
