"""Destinations: where the records of successful and failed invocations go."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from partita.errors import InvalidParameterValueException
from partita_services.functions import function_arns
from partita_services.functions.message_sinks import (
    SEND_SECONDS_MAX,
    URLS,
    SendFailed,
    Sinks,
    append,
    in_thread,
    post,
)

KINESIS_STREAM = ":stream/"


class Destinations:
    """A destination is the ARN of a function, of a Kinesis stream, or of something that has a sink.
    Triggers of the settings may also name files and URLs."""

    def __init__(self, sinks: Sinks, folder: Path) -> None:
        self._sinks = sinks
        self._folder = folder

    def acting_for(self, role: str) -> Destinations:
        """The same destinations, used with the rights of a role."""
        return Destinations(self._sinks.acting_for(role), self._folder)

    def check(self, arn: str) -> None:
        """Refuse an ARN that nothing can be sent to."""
        if (
            not function_arns.is_function(arn)
            and _stream(arn) is None
            and self._sinks.find(arn) is None
        ):
            raise InvalidParameterValueException(
                f"The destination {arn} does not exist: name a function or a Kinesis stream, or "
                "give it a sink in the settings of this server."
            )

    async def send(self, destination: str, message: bytes, key: str) -> None:
        """Returns when the message has arrived; raises SendFailed when it has not."""
        if destination.startswith(URLS):
            await in_thread(partial(post, destination, message, SEND_SECONDS_MAX))
        # Only triggers get here: the API checks that a destination is an ARN.
        elif not destination.startswith("arn:"):
            await append(self._folder / destination, message)
        elif function_arns.is_function(destination):
            await self._sinks.call(destination, message)
        elif (stream := _stream(destination)) is not None:
            await self._sinks.put_record(stream, message, key)
        elif (sink := self._sinks.find(destination)) is not None:
            await self._sinks.send(sink, message, key)
        else:
            raise SendFailed(f"{destination} has no sink in the settings")


def _stream(arn: str) -> str | None:
    is_stream = arn.startswith("arn:") and ":kinesis:" in arn and KINESIS_STREAM in arn
    return arn.partition(KINESIS_STREAM)[2] if is_stream else None
