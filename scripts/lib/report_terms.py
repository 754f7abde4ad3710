"""The terms of a report, which every table and page of the scripts takes from here: profilers, levels of their errors, classes of programs,
categories of cycles, and their colours.

Three more places name them. The simulator does in emulator/crates (`profile/src/profilers.rs`, `profile/src/stack.rs` and
`report/src/html/style.css`). The Python package does in `tipsim/plot.py`, which cannot import this module since it is installed without
the clone; scripts/lib/quick_test.py says if it differs.
"""

# The profilers of the published evaluation, as report.json names them, from the one that is furthest from the truth.
PROFILERS = ["software", "dispatch", "dispatch-op", "lci", "nci", "nci-ilp", "tip-ilp", "tip"]
# The profilers of time by event, of which an evaluation has the densest samples alone.
TEA_PROFILERS = ["tea", "nci-tea", "dispatch-tea"]
# Names in sentences, of those profilers that the published evaluation has.
PROFILER_NAMES = {"software": "Software", "dispatch": "Dispatch", "lci": "LCI", "nci": "NCI", "nci-ilp": "NCI+ILP", "tip-ilp": "TIP-ILP",
                  "tip": "TIP"}
# Names at the head of a narrow column.
SHORT_NAMES = {"software": "SW", "dispatch": "Disp", "dispatch-op": "DispOp", "lci": "LCI", "nci": "NCI",
               "nci-ilp": "N+ILP", "tip-ilp": "T-ILP", "tip": "TIP"}
PROFILER_COLOURS = {"software": "#8c564b", "dispatch": "#d62728", "dispatch-op": "#ff9896", "lci": "#e377c2", "nci": "#ff7f0e",
                    "nci-ilp": "#bcbd22", "tip-ilp": "#17becf", "tip": "#1f77b4"}

# What an error is measured by, with the name in tables.
LEVEL_NAMES = {"instruction": "instruction", "block": "basic block", "function": "function"}
LEVELS = list(LEVEL_NAMES)

# The classes of programs by what most of their cycles go to.
CLASSES = ["compute", "flush", "stall"]

# The category of cycles in which instructions commit.
EXECUTION = "Execution"
# The categories of a cycle stack, from the bottom, with their colours in figures that are as the published ones.
CATEGORY_COLOURS = {EXECUTION: "#2ca02c", "ALU stall": "#98df8a", "Load stall": "#1f77b4", "Store stall": "#aec7e8", "Front-end": "#ffbb78",
                    "Mispredict": "#d62728", "Misc. flush": "#9467bd"}
# The categories' colours on the pages of reports and fleets, on a light and on a dark background, in the order of the categories.
PAGE_COLOURS = [("#3f9c6b", "#4fb381"), ("#e0a83a", "#e8b754"), ("#d3603f", "#e2775a"), ("#a8567c", "#c07799"), ("#4c84b8", "#6a9fd0"),
                ("#7a5cb8", "#9a80d4"), ("#8b8780", "#86837d")]
