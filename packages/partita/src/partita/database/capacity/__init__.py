"""Capacity: what requests cost in units, token buckets, partitions, auto scaling and insights."""
