"""The catalogue in DynamoDB, where it moved to."""
