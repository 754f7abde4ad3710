"""Measures how true the simulator's results are, and how fast it is (scripts/bench, scripts/dev compare, workloads/what-if/run)."""
