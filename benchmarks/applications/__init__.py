"""Benchmarks of the services, the metric catalogue and the page hit counter."""
