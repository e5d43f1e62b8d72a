"""The engine of DynamoDB, in one process: from a valid request to an answer, and to the disk."""
