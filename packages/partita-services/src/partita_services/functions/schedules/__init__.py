"""EventBridge Scheduler: schedules that call functions, start machines and send messages."""
