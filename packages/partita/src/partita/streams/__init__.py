"""What follows changes and events: Kinesis's API over the event log, and triggers."""
