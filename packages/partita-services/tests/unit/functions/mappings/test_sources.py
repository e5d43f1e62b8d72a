"""The streams of a table as one source: in which order their shards are read."""

from __future__ import annotations

from partita.client.consumer.dynamodb_stream_source import StreamShard
from partita.client.consumer.stream_shards import ready_shards
from partita_services.functions.mappings.event_sources import shards_of

Stream = tuple[str, list[StreamShard]]


def shard(number: int, parent: StreamShard | None = None) -> StreamShard:
    return StreamShard(str(number), (parent.shard_id,) if parent else (), False)


def stream(number: int, *shards: StreamShard) -> Stream:
    return f"arn:aws:dynamodb:::table/orders/stream/{number}", list(shards)


def order(*streams: Stream) -> list[list[tuple[int, int]]]:
    """Stream and number of the shards that may be read at the same time, one turn after another."""
    shards, finished, turns = list(shards_of(streams)), set[str](), []
    while ready := ready_shards(shards, finished):
        turns.append([(int(one.stream_arn.rpartition("/")[2]), int(one.name)) for one in ready])
        finished |= {one.shard_id for one in ready}
    return turns


def test_a_stream_is_read_when_the_one_before_is_done_with() -> None:
    root = shard(1)
    first = stream(7, root, shard(2, root), shard(3, root))
    second = stream(8, shard(1), shard(2))
    assert order(first, second) == [[(7, 1)], [(7, 2), (7, 3)], [(8, 1), (8, 2)]]


def test_a_stream_of_which_nothing_is_left_is_passed_over() -> None:
    first = stream(7, shard(1))
    second = stream(8)
    third = stream(9, shard(1))
    assert order(first, second, third) == [[(7, 1)], [(9, 1)]]


def test_a_shard_whose_parent_is_gone_still_waits_for_the_stream_before() -> None:
    root = shard(1)
    assert order(stream(7, shard(1)), stream(8, shard(2, root))) == [[(7, 1)], [(8, 2)]]
