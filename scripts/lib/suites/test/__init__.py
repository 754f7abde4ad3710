"""Tests of the suites' programs, on small stand-ins for SPEC CPU2017 and PARSEC 3.0."""
