"""The four operations of DynamoDB Streams."""
