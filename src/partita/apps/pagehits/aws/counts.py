"""Between a stream of counts and the consumer: Lambda's own form of a batch of Kinesis records.

Flink writes counts to a stream, from which Lambda calls a function with `Records` and takes back
the sequence numbers that failed; the consumer speaks the protocol of a destination of Kinesis
Analytics.
"""

from __future__ import annotations

from typing import Any

from partita.apps.pagehits import consumer


def handler(event: dict[str, Any], context: object = None) -> dict[str, Any]:
    """The entry point of AWS Lambda, with ReportBatchItemFailures."""
    records = [
        {"recordId": record["kinesis"]["sequenceNumber"], "data": record["kinesis"]["data"]}
        for record in event["Records"]
    ]
    answer = consumer.handler({"records": records}, context)
    failed = [result["recordId"] for result in answer["records"] if result["result"] != consumer.OK]
    return {"batchItemFailures": [{"itemIdentifier": number} for number in failed]}
