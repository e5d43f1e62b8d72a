"""The audit log: who did what, when and from where. Its lines are chained, so that gaps show."""
