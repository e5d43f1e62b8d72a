"""The event log: ordered, partitioned, durable streams of records, as Kinesis has them."""
