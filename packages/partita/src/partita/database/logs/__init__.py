"""The logs of the database: of changes, for DynamoDB Streams, and of events, for Kinesis."""
