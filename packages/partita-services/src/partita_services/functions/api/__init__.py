"""The APIs of Lambda and EventBridge Scheduler: functions from requests to answers, whose members
are those of AWS's service description."""
