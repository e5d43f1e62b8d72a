"""The metric catalogue: what each metric of a reporting platform is computed from, in versions.

It moved from a relational database to DynamoDB while it was running (docs/metrics.md).
"""
