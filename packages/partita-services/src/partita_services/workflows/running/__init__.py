"""Running machines: executions that survive their process, and what their tasks call."""
