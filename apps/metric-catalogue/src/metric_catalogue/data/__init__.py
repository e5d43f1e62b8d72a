"""GetMetricData: the values of metrics, read from a table or computed by a formula."""
