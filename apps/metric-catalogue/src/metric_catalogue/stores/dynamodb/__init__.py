"""The catalogue in DynamoDB, to which it is migrated."""
