"""What states do with their data: each type, choices, forks, retries."""
