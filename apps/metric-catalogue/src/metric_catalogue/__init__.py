"""The metric catalogue: what each metric of a reporting platform is computed from, in versions.

It can move from a relational database to DynamoDB while it is in use (docs/metrics.md). Figures are
numbered as in the thesis that describes the original of this service.
"""
