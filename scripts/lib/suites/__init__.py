"""Builds and runs programs of SPEC CPU2017, SPEC CPU 2026 and PARSEC 3.0 from the user's own copy, for scripts/run-spec."""
