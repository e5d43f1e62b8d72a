"""The API of Kinesis Data Streams, over the event log of the database."""
