"""Responses with the headers of AWS's services, and refusals in the form of AWS's errors.

Every response has a request id of 52 characters, the CRC-32 of the body as it is sent (after
compression), its type and its length. (dynalite's tests recorded them from AWS.)
"""

from __future__ import annotations

from http import HTTPStatus
from itertools import count
from secrets import token_hex
from time import time
from typing import Final

import orjson

from partita.errors import (
    AccessDeniedException,
    DynamoDBError,
    InternalServerError,
)
from partita.foundation.checksum import crc32
from partita.foundation.service_limits import KB, MB
from partita.server.http.content_encodings import PACKERS, chosen
from partita.server.http.http_messages import (
    CONNECTION_LINES,
    HttpRequest,
    HttpResponse,
    Responses,
    date_line,
)

JSON_1_0: Final = b"application/x-amz-json-1.0"
JSON_1_1: Final = b"application/x-amz-json-1.1"
CBOR_1_1: Final = b"application/x-amz-cbor-1.1"
OF_KINESIS: Final = (JSON_1_1, CBOR_1_1)
EXPOSED_HEADERS: Final = "x-amzn-RequestId,x-amzn-ErrorType,x-amzn-ErrorMessage,Date"
"""Response headers that pages may read by CORS (recorded from several services)."""
# DynamoDB compresses responses above 4 KB when a client accepts it (Alternator's tests), Kinesis
# does not. Compressing the largest ones, of BatchGetItem, would keep all other requests waiting.
PACKED_BYTES_MIN: Final = 4 * KB
PACKED_BYTES_MAX: Final = 1 * MB

_STATUS_LINES: Final = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\nserver: Server\r\n".encode()
    for status in HTTPStatus
}
# The service sends this response in chunked encoding with an empty body (dynalite).
_TOO_LARGE: Final = _STATUS_LINES[413] + (
    b"transfer-encoding: chunked\r\n%bconnection: close\r\n\r\n0\r\n\r\n"
)
_REQUEST_ID: Final = f"{token_hex(20).upper()}%012X".encode()
_next_request_id: Final = map(_REQUEST_ID.__mod__, count()).__next__


class AwsResponses(Responses):
    """Encodes responses as AWS's services do."""

    def encode(self, response: HttpResponse, request: HttpRequest) -> bytes:
        body = response.body
        more = response.headers
        checksum = response.checksum
        size = len(body)
        if PACKED_BYTES_MIN < size <= PACKED_BYTES_MAX and response.content_type not in OF_KINESIS:
            coding = chosen(request.headers.get(b"accept-encoding", b""))
            if coding is not None:
                body = PACKERS[coding](body)
                size = len(body)
                more += b"content-encoding: %b\r\n" % coding
                checksum = None
        head = (
            b"%b%bcontent-type: %b\r\ncontent-length: %d\r\n"
            b"x-amzn-requestid: %b\r\nx-amz-crc32: %d\r\n%b%b%b\r\n"
        ) % (
            _STATUS_LINES[response.status],
            date_line(int(time())),
            response.content_type,
            size,
            _next_request_id(),
            crc32(body) if checksum is None else checksum,
            more,
            request.answer_headers,
            CONNECTION_LINES[request.keep_alive, request.is_http_1_0],
        )
        return head if request.method == b"HEAD" else head + body

    def refusal(self, status: int, detail: str) -> HttpResponse:
        if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return HttpResponse(status)
        # The service answers a body that it cannot decompress with a 500 (Alternator's tests).
        error: DynamoDBError = AccessDeniedException(detail)
        if status == HTTPStatus.UNSUPPORTED_MEDIA_TYPE:
            error = InternalServerError(detail)
            status = error.status
        return HttpResponse(status, error_body(error), JSON_1_0)

    def final(self, status: int, detail: str, headers: bytes = b"") -> bytes:
        if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return _TOO_LARGE % headers
        if status == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
            status = HTTPStatus.BAD_REQUEST
        body = detail.encode()
        return (
            b"%bcontent-type: text/plain\r\ncontent-length: %d\r\nx-amzn-requestid: %b\r\n"
            b"%bconnection: close\r\n\r\n%b"
        ) % (_STATUS_LINES[status], len(body), _next_request_id(), headers, body)


def error_body(error: DynamoDBError, *, is_qualified: bool = True) -> bytes:
    """Returns `{"__type": ..., "message": ..., ...}`, without `message` if the error has no text.

    Kinesis sends the type without a namespace, so it needs `is_qualified=False`.
    """
    content: dict[str, object] = {"__type": error.wire_type if is_qualified else error.wire_code}
    if error.message is not None:
        content[error.message_member] = error.message
    return orjson.dumps({**content, **error.members})
