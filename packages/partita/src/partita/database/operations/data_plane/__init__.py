"""Reading and writing items: single items, batches, transactions, Query, Scan."""
