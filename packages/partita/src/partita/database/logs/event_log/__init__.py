"""The event log behind the Kinesis API: durable streams of records, divided into ordered shards."""
