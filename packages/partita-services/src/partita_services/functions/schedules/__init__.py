"""Schedules, as EventBridge Scheduler has them: they call functions and start machines."""
