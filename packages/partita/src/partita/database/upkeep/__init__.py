"""Background jobs: index backfill, TTL, auto scaling, Kinesis delivery, removal of old data."""
