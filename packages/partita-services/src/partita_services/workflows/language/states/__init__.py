"""What states do: each type, their data flow, choices, forks and retries."""
