"""Simulates the RTL of a tile of BOOM that the user has, and writes per-cycle traces of its ROB (scripts/rtl)."""
