"""Evaluates the profilers on real programs, beside the published evaluation (scripts/study)."""
