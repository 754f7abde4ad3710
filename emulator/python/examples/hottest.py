#!/usr/bin/env python3
"""The hottest instructions of a trace, by a profiler in ten lines. With period 1 it is the Oracle; with another one it is TIP.

Usage: hottest.py TRACE [PERIOD]
"""

import sys

import polars as pl

import tipsim


def profile(trace, period=1, hart=0):
    """Cycles by process and instruction. The last of every `period` cycles is a sample, and stands for all of them."""
    parts, seen = [], 0
    for batch in trace.spans(hart):
        spans = pl.DataFrame(batch).filter(pl.col("state") != "idle")
        end = seen + pl.col("cycles").cum_sum()
        samples = end // period - (end - pl.col("cycles")) // period
        cycles = samples * period / pl.col("insts").list.len()
        charged = spans.select(pl.col("process").cast(str), "pid", inst="insts", cycles=cycles).explode("inst")
        parts.append(charged.group_by("process", "pid", "inst").sum())
        seen += spans["cycles"].sum()
    return pl.concat(parts).group_by("process", "pid", "inst").sum().join(pl.DataFrame(trace.static_instructions(hart)), on="inst").sort("cycles", descending=True)


if __name__ == "__main__":
    found = profile(tipsim.Trace(sys.argv[1]), *map(int, sys.argv[2:]))
    for row in found.head(20).iter_rows(named=True):
        print(f"{row['cycles']:>14,.0f}  {row['process']:16} {row['pc']:#x}  {row['instruction']}")
