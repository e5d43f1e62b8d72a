"""What reads and writes items: single ones, batches, transactions, Query, Scan."""
