"""The one error tree: every error response is an instance of one of these classes.

A class has its wire name (`__type`), its HTTP status, and the member in which AWS sends the text
(`message` for the service's own errors, `Message` for those of its protocol layer). Only
`server/protocol` turns an error into a response.
"""

from __future__ import annotations

from typing import Any, ClassVar

INVALID = "One or more parameter values were invalid: "
"""The beginning of most of the service's errors about a value."""
INVALID_REQUEST = "Invalid Request: "
"""The same for operations on backups, exports and imports (recorded)."""

SERVICE = "com.amazonaws.dynamodb.v20120810#"
VALIDATE = "com.amazon.coral.validate#"
CORAL = "com.amazon.coral.service#"
AVAILABILITY = "com.amazon.coral.availability#"


class PartitaError(Exception):
    """The base of all errors with a message for people, such as an unwritable data folder."""


class RequestError(PartitaError):
    """Raised when a request is refused, which is a normal outcome and not a failure of ours."""


class DynamoDBError(RequestError):
    """An error that a client receives; its wire code is `code`, or else the name of the class."""

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
    """Raised when the engine cannot store a commit, or cannot open its folder."""


class ValidationException(DynamoDBError):
    namespace = VALIDATE


class RefusedValue(ValidationException):
    """The base of validation errors that some operations treat differently from others."""

    code = "ValidationException"


class MalformedValue(RefusedValue):
    """Raised for JSON that is not an attribute value, such as `{}` or `{"S": "a", "N": "1"}`.

    In an ExclusiveStartKey, the service reports it with another text.
    """


class KeyTypeError(RefusedValue):
    """Raised for a key that does not fit the schema; in a transaction, it is the reason for a
    cancellation instead of an error of the request."""


class EmptyKeyError(RefusedValue):
    """Raised for an empty key value; it is an error of the request even in a transaction."""


class ProtocolError(DynamoDBError):
    """The base of errors that are raised before an operation gets the request."""

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
    """Raised for an access key that does not exist or is no longer valid."""


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
    """Raised by the Kinesis API for invalid values that its service description allows."""


class ExpiredNextTokenException(DynamoDBError):
    pass


class DryRunOperationException(DynamoDBError):
    """Raised for a dry run that would have succeeded."""


class ThrottlingException(DynamoDBError):
    """Raised when a request on an on-demand table is throttled, or when the server is busy."""

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
    """The base of errors for clients of workflows, with the codes and texts of Step Functions."""

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
    """The base of errors for clients of Lambda and EventBridge Scheduler, which use REST."""

    namespace = ""


class FunctionNotFound(RestError):
    """Raised by Lambda and the scheduler; DynamoDB has the same code with another status."""

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
    """An access error with the status that it has in the REST protocol."""

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
