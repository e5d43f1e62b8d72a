"""A stream consumer: workers share the shards of a Kinesis or DynamoDB stream by leases."""
