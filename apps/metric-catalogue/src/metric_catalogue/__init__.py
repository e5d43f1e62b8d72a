"""The metric catalogue stores, in versions, what each metric of a reporting platform is computed
from.

It can be migrated from a relational database to DynamoDB while it is in use
(docs/tutorials/move-a-metric-catalogue.md). The thesis that describes the original of this service
numbers the figures that comments refer to.
"""
