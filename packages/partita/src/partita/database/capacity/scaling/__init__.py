"""Capacity that changes over time: auto scaling, schedules, and peaks of on-demand tables."""
