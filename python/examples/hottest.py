#!/usr/bin/env python3
"""The hottest instructions of a trace, by a profiler in ten lines. With period 1 it is the Oracle; with another one it is TIP.

Usage: hottest.py TRACE [PERIOD]
"""

import sys

import polars as pl

import tipsim


def profile(trace, period=1, hart=0):
    """Cycles by process and instruction. One of every `period` cycles is a sample, and stands for all of them."""
    parts = []
    for batch in trace.spans(hart):
        span = pl.DataFrame(batch).filter(pl.col("insts").list.len() > 0)
        samples = (pl.col("start") + pl.col("cycles") - 1) // period - (pl.col("start") - 1) // period
        charged = span.select("pid", inst="insts", cycles=samples * period / pl.col("insts").list.len()).explode("inst")
        parts.append(charged.group_by("pid", "inst").sum())
    total = pl.concat(parts).group_by("pid", "inst").sum().filter(pl.col("cycles") > 0)
    instructions = pl.DataFrame(trace.static_instructions(hart)).select("inst", "pc", "instruction")
    return total.join(instructions, on="inst").sort("cycles", descending=True)


if __name__ == "__main__":
    found = profile(tipsim.Trace(sys.argv[1]), *map(int, sys.argv[2:]))
    for row in found.head(20).iter_rows(named=True):
        print(f"{row['cycles']:>14,.0f}  {row['pc']:#x}  {row['instruction']}")
