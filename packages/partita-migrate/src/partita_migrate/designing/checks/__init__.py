"""Checks a design against DynamoDB's limits, the source's schema and the access patterns."""
