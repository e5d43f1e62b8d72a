"""Kinesis Data Streams: its operations, over the event log of the database."""
