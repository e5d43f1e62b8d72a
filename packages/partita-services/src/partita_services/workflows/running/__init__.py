"""Running machines: executions that survive a crash of their process, and the tasks that they
call."""
