"""Stages `cutover`, `rollback` and `finish`, which change the side that is authoritative."""
