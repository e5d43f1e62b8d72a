"""Scan: every item of a table or index in the order of partition hashes, perhaps in segments."""

from __future__ import annotations

from partita.database.operations.data_plane.expression_parameters import (
    SCAN,
    check_parameters,
    compile_expressions,
)
from partita.database.operations.data_plane.result_pages import (
    INVALID_START,
    check_select,
    check_start_key,
    find_source,
    read,
    select,
    start_values,
)
from partita.database.operations.operation_context import ReadContext, Request
from partita.database.tables import table_layout
from partita.errors import ValidationException


def scan(context: ReadContext, request: Request) -> bytes:
    check_parameters(request, SCAN)
    check_select(request, "")
    start_key = start_values(request)
    _check_segments(request)
    expressions = compile_expressions(request, SCAN)
    source = find_source(context, request)
    segment, total_segments = request.get("Segment", 0), request.get("TotalSegments", 1)
    start, stop = table_layout.segment_range(source.prefix, segment, total_segments)
    if start_key is not None:
        check_start_key(source, start_key)
        place = source.place(start_key)
        if not start <= place < stop:
            raise ValidationException(
                f"{INVALID_START}: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with "
                f"correct Segment. TotalSegments: {total_segments} Segment: {segment}"
            )
        start = place + b"\x00"
    return read(context, request, select(context, request, source, expressions), start, stop)


def _check_segments(request: Request) -> None:
    segment, total_segments = request.get("Segment"), request.get("TotalSegments")
    if segment is not None and total_segments is None:
        raise ValidationException(
            "The TotalSegments parameter is required but was not present in the request when "
            "Segment parameter is present"
        )
    if total_segments is not None and segment is None:
        raise ValidationException(
            "The Segment parameter is required but was not present in the request when "
            "parameter TotalSegments is present"
        )
    if segment is not None and segment >= total_segments:
        raise ValidationException(
            "The Segment parameter is zero-based and must be less than parameter TotalSegments"
        )
