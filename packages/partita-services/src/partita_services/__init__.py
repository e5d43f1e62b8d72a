"""Lambda, EventBridge Scheduler and Step Functions, in processes beside a Partita server."""
