"""The one error tree: every answer that is not a success is one of these classes.

A class carries its wire name (`__type`), its HTTP status and the name under which AWS sends the
text (`message` for the service's own errors, `Message` for those of its protocol layer).
`protocol.envelope` turns an error into a response; nothing else does.
"""

from __future__ import annotations

from typing import Any, ClassVar

INVALID = "One or more parameter values were invalid: "
INVALID_REQUEST = "Invalid Request: "
"""What operations on backups, exports and imports say instead (recorded)."""
"""How most of the service's refusals of a value begin."""

SERVICE = "com.amazonaws.dynamodb.v20120810#"
VALIDATE = "com.amazon.coral.validate#"
CORAL = "com.amazon.coral.service#"
AVAILABILITY = "com.amazon.coral.availability#"


class PartitaError(Exception):
    """Anything that we tell a person in words, such as a data folder that cannot be written."""


class RequestError(PartitaError):
    """A request was refused: its outcome, as an answer is, and no failure of ours."""


class DynamoDBError(RequestError):
    """An error that a client receives. Its code is its class's name, unless the class says."""

    code: ClassVar[str] = ""
    namespace: ClassVar[str] = SERVICE
    status: ClassVar[int] = 400
    message_member: ClassVar[str] = "message"

    def __init__(self, message: str | None = None, **members: Any) -> None:
        super().__init__(message)
        self.message = message
        self.members = members

    @property
    def wire_code(self) -> str:
        return self.code or type(self).__name__

    @property
    def wire_type(self) -> str:
        return self.namespace + self.wire_code


class StorageError(PartitaError):
    """The engine could not keep a commit, or could not open its folder."""


class ValidationException(DynamoDBError):
    namespace = VALIDATE


class RefusedValue(ValidationException):
    """A kind of ValidationException that some operations treat differently from the others."""

    code = "ValidationException"


class MalformedValue(RefusedValue):
    """A value that is none at all. A starting key is refused with a word more because of it."""


class KeyTypeError(RefusedValue):
    """A key that does not fit the schema. A transaction is cancelled by it, not refused whole."""


class EmptyKeyError(RefusedValue):
    """An empty key value. A transaction is refused whole because of it."""


class ProtocolError(DynamoDBError):
    """Refused before any operation saw the request."""

    namespace = CORAL


class SerializationException(ProtocolError):
    message_member = "Message"


class UnknownOperationException(ProtocolError):
    pass


class AccessDeniedException(ProtocolError):
    message_member = "Message"


class MissingAuthenticationTokenException(ProtocolError):
    pass


class IncompleteSignatureException(ProtocolError):
    pass


class InvalidSignatureException(ProtocolError):
    pass


class UnrecognizedClientException(ProtocolError):
    """Of a key that nobody has, or that may not be used any more."""


class ExpiredTokenException(ProtocolError):
    pass


class ResourceNotFoundException(DynamoDBError):
    pass


class PolicyNotFoundException(DynamoDBError):
    pass


class ResourceInUseException(DynamoDBError):
    pass


class LimitExceededException(DynamoDBError):
    pass


class ConditionalCheckFailedException(DynamoDBError):
    pass


class DuplicateItemException(DynamoDBError):
    pass


class ItemCollectionSizeLimitExceededException(DynamoDBError):
    pass


class TransactionCanceledException(DynamoDBError):
    message_member = "Message"


class TransactionConflictException(DynamoDBError):
    pass


class TransactionInProgressException(DynamoDBError):
    message_member = "Message"


class IdempotentParameterMismatchException(DynamoDBError):
    message_member = "Message"


class ProvisionedThroughputExceededException(DynamoDBError):
    pass


class ExpiredIteratorException(DynamoDBError):
    pass


class TrimmedDataAccessException(DynamoDBError):
    pass


class InvalidArgumentException(DynamoDBError):
    """How Kinesis refuses what its description allows."""


class ExpiredNextTokenException(DynamoDBError):
    pass


class DryRunOperationException(DynamoDBError):
    """The request would have succeeded, had it been meant."""


class ThrottlingException(DynamoDBError):
    """How operations on tables are throttled."""

    namespace = AVAILABILITY


class InternalServerError(DynamoDBError):
    status = 500


class TableNotFoundException(DynamoDBError):
    pass


class TableAlreadyExistsException(DynamoDBError):
    pass


class TableInUseException(DynamoDBError):
    pass


class BackupNotFoundException(DynamoDBError):
    pass


class BackupInUseException(DynamoDBError):
    pass


class ContinuousBackupsUnavailableException(DynamoDBError):
    pass


class PointInTimeRecoveryUnavailableException(DynamoDBError):
    pass


class InvalidRestoreTimeException(DynamoDBError):
    pass


class InvalidExportTimeException(DynamoDBError):
    pass


class ExportNotFoundException(DynamoDBError):
    pass


class ExportConflictException(DynamoDBError):
    pass


class ImportNotFoundException(DynamoDBError):
    pass


class ImportConflictException(DynamoDBError):
    pass


class StepFunctionsError(DynamoDBError):
    """What clients of workflows receive; codes and texts are those of AWS Step Functions."""

    namespace = "com.amazonaws.swf.service.v2.model#"


class InvalidArn(StepFunctionsError):
    pass


class InvalidName(StepFunctionsError):
    pass


class InvalidToken(StepFunctionsError):
    pass


class InvalidOutput(StepFunctionsError):
    pass


class InvalidExecutionInput(StepFunctionsError):
    pass


class InvalidStateMachineDefinition(StepFunctionsError):
    code = "InvalidDefinition"


class InvalidLoggingConfiguration(StepFunctionsError):
    pass


class InvalidTracingConfiguration(StepFunctionsError):
    pass


class InvalidEncryptionConfiguration(StepFunctionsError):
    pass


class MissingRequiredParameter(StepFunctionsError):
    pass


class StateMachineDoesNotExist(StepFunctionsError):
    pass


class StateMachineAlreadyExists(StepFunctionsError):
    pass


class StateMachineDeleting(StepFunctionsError):
    pass


class StateMachineTypeNotSupported(StepFunctionsError):
    pass


class ExecutionDoesNotExist(StepFunctionsError):
    pass


class ExecutionAlreadyExists(StepFunctionsError):
    pass


class ExecutionNotRedrivable(StepFunctionsError):
    pass


class ConflictException(StepFunctionsError):
    pass


class ServiceQuotaExceededException(StepFunctionsError):
    pass


class ActivityDoesNotExist(StepFunctionsError):
    pass


class TaskDoesNotExist(StepFunctionsError):
    pass


class TaskTimedOut(StepFunctionsError):
    pass


class TooManyTags(StepFunctionsError):
    pass


class ResourceNotFound(StepFunctionsError):
    pass


class RestError(DynamoDBError):
    """What clients of Lambda and EventBridge Scheduler receive, whose protocol is REST."""

    namespace = ""


class FunctionNotFound(RestError):
    """Of Lambda and the scheduler; DynamoDB has the same code with another status."""

    code = "ResourceNotFoundException"
    status = 404


class ResourceConflictException(RestError):
    status = 409


class MappingInUse(RestError):
    code = "ResourceInUseException"


class ScheduleConflict(RestError):
    code = "ConflictException"
    status = 409


class PreconditionFailedException(RestError):
    status = 412


class InvalidParameterValueException(RestError):
    pass


class InvalidRequestContentException(RestError):
    pass


class RequestTooLargeException(RestError):
    status = 413


class TooManyRequestsException(RestError):
    status = 429


class CodeStorageExceededException(RestError):
    pass


class UploadsNotAllowed(RestError):
    code = "AccessDeniedException"
    status = 403


class RoleNotAssumed(RestError):
    code = "AccessDeniedException"
    status = 403


class Forbidden(RestError):
    """The refusal of one who may not, with the status that it has in this protocol."""

    status = 403

    def __init__(self, refusal: DynamoDBError) -> None:
        super().__init__(refusal.message)
        self._wire_code = refusal.wire_code

    @property
    def wire_code(self) -> str:
        return self._wire_code


class MissingToken(RestError):
    code = "MissingAuthenticationTokenException"
    status = 403


class UnknownRoute(RestError):
    code = "UnknownOperationException"
    status = 404


class ServiceException(RestError):
    status = 500
