"""Models the costs and delays of the four ways to deliver visits in figure 5.1, with the buffers of
the thesis.

A visit waits for half of the buffer's time on average, and for all of it at most. Option D adds the
same for its schedule. `python -m benchmarks.applications.delivery` measures what is modelled here.
"""

from __future__ import annotations

from partita_migrate.costing.prices.price_list import DeliveryPrices, LambdaPrices

VISITS_SECOND = 100
VISIT_BYTES = 400
BUFFER_SECONDS = 60
SCHEDULE_SECONDS = 300
CALL_MS = 200
MONTH_SECONDS = 30 * 24 * 3_600
MILLION = 1_000_000
GB = 1_000_000_000
DESCRIPTIONS = {
    "direct": "the delivery stream calls the counter",
    "bucket": "the bucket calls the counter for each file",
    "topic": "the bucket's topic calls the counter",
    "schedule": "a schedule looks for new files",
}


def mean_delay_seconds(
    route: str, buffer: float = BUFFER_SECONDS, schedule: float = SCHEDULE_SECONDS
) -> float:
    return buffer / 2 + (schedule / 2 if route == "schedule" else 0.0)


def longest_delay_seconds(
    route: str, buffer: float = BUFFER_SECONDS, schedule: float = SCHEDULE_SECONDS
) -> float:
    return buffer + (schedule if route == "schedule" else 0.0)


def dollars_month(functions: LambdaPrices, delivery: DeliveryPrices, route: str) -> float:
    files = MONTH_SECONDS / BUFFER_SECONDS
    calls = MONTH_SECONDS / SCHEDULE_SECONDS if route == "schedule" else files
    paid_ms = -(-CALL_MS // functions.execution_ms) * functions.execution
    total = VISITS_SECOND * VISIT_BYTES * MONTH_SECONDS / GB * delivery.stream_gb
    total += calls * (paid_ms + functions.requests_million / MILLION)
    if route != "direct":
        total += files / 1_000 * (delivery.puts_thousand + delivery.gets_thousand)
    if route == "topic":
        total += files / MILLION * delivery.notifications_million
    if route == "schedule":
        # A look lists the folders of two hours: a request for each, at the price of a PUT.
        total += calls * (2 * delivery.puts_thousand / 1_000)
        total += calls / MILLION * delivery.schedules_million
    return total
