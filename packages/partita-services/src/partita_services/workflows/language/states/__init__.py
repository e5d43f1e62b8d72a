"""The states: what each type does, its data flow, and its retries."""
