"""The parts of a verification: sums of both sides, and what differs where they do."""
