"""Tests of the suites' programs, on small stand-ins for SPEC CPU2017, SPEC CPU 2026 and PARSEC 3.0."""
