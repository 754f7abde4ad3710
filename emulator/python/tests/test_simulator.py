"""Runs, and what is made of them."""

import importlib.util
import pathlib

import matplotlib.pyplot as plt
import nbclient
import nbformat
import polars as pl
import pytest

import tipsim
from tipsim import plot


def test_a_run_describes_itself(run):
    assert run.info["name"] == "small" and run.report["totals"]["cycles"] > 10**6
    assert "quickstart" in repr(run) and "quickstart" in run.text
    assert "1 harts" not in repr(run.trace) and run.trace.end == "complete"
    assert run.trace.metadata["name"] == "small"


def test_errors_of_the_simulator_are_raised(tmp_path, binary, monkeypatch, capfd):
    spec = tmp_path / "bad.toml"
    spec.write_text('[run]\ncommand = "true"\nregoin = "command"\n')
    with pytest.raises(tipsim.Error, match="bad.toml.*regoin"):
        tipsim.run(spec, tmp_path / "out")
    with pytest.raises(tipsim.Error, match="core.rob.entries"):
        spec.write_text('[run]\ncommand = "true"\n')
        tipsim.run(spec, tmp_path / "out", set={"core.rob.entries": "many"})
    assert "tipsim: " in capfd.readouterr().err
    with pytest.raises(tipsim.Error, match="none-such"):
        tipsim.profile(["none-such"], tmp_path / "out", ["--file", str(tmp_path / "none-such")])
    monkeypatch.setenv("TIPSIM", str(tmp_path))
    with pytest.raises(tipsim.Error, match="TIPSIM: expected the binary or a clone of the repository, found"):
        tipsim.run(spec)
    monkeypatch.setenv("TIPSIM", str(tmp_path / "none"))
    with pytest.raises(tipsim.Error, match="none: No such file"):
        tipsim.run(spec)


def hottest(python_folder):
    spec = importlib.util.spec_from_file_location("hottest", python_folder / "examples/hottest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("period, column", [(1, "oracle"), (199, "tip")])
def test_ten_lines_are_the_oracle_and_tip(run, python_folder, period, column):
    """The example is, with every cycle, the report's Oracle, and with one of 199 the report's TIP."""
    profile = hottest(python_folder).profile(run.trace, period)
    found, totals = {}, {}
    for row in profile.iter_rows(named=True):
        process = (row["process"], row["pid"])
        found[*process, row["pc"]] = found.get((*process, row["pc"]), 0) + row["cycles"]
        totals[process] = totals.get(process, 0) + row["cycles"]
    rows = pl.DataFrame(run.instructions()).to_dicts()
    assert len(rows) > 500
    for row in rows:
        # Of several processes of one name, the report's have the number behind it.
        process = (row["process"].removesuffix(f"-{row['pid']}"), row["pid"])
        expected = row["cycles"] if period == 1 else row[column] * totals.get(process, 0)
        assert found.get((*process, row["pc"]), 0) == pytest.approx(expected, rel=1e-9, abs=1e-6), row
    errors = {(row["process"], row["sampler"]): row["error"] for row in pl.DataFrame(run.errors()).to_dicts() if row["level"] == "instruction"}
    expected = 0.0 if period == 1 else errors["quickstart", "tip"]
    assert run.error(profile, "quickstart") == pytest.approx(expected, abs=1e-9)
    with pytest.raises(ValueError, match="profile: expected columns process, pid, pc and cycles; found none of the name pc"):
        run.error(profile.drop("pc"))
    with pytest.raises(ValueError, match="expected cycles of nobody"):
        run.error(profile, "nobody")
    if period == 1:
        assert sum(found.values()) == pytest.approx(run.report["processes"][0]["cycles"], rel=1e-12)


def heights(axes):
    """Bars by what the legend calls them."""
    return {bars.get_label(): [bar.get_height() for bar in bars] for bars in axes.containers}


def test_figures_show_what_the_report_says(run):
    first, *others = run.report["processes"]
    shown = [first, *(p for p in others if p["share"] >= 0.01)]
    bars = heights(plot.cycle_stacks(run))
    for n, category in enumerate(run.report["categories"]):
        assert bars[category] == pytest.approx([100 * p["stack"][n] for p in shown])
    columns = [c["name"] for c in run.report["columns"]]
    for level in ["function", "block", "instruction"]:
        axes = plot.errors(run, level)
        bars = heights(axes)
        for name in ["tip", "nci", "software"]:
            means = run.report["columns"][columns.index(name)]["published"][level]
            expected = [p["errors"][columns.index(name)][level]["error"] for p in shown] + ([means["mean"]] if "mean" in (means or {}) else [])
            assert bars[name] == pytest.approx([100 * e for e in expected]), (level, name)
        assert axes.get_ylabel() == f"Error by {level} (% of cycles)"
    lines = {line.get_label(): line for line in plot.errors_by_period(run, "block", "quickstart").lines}
    assert list(lines["nci"].get_xdata()) == [199, 1009] and "tip, random" in lines
    quickstart = next(p for p in others if p["name"] == "quickstart")
    at = [columns.index("nci"), columns.index("nci@1009")]
    assert list(lines["nci"].get_ydata()) == pytest.approx([100 * quickstart["errors"][n]["block"]["error"] for n in at])
    plt.close("all")


def test_figures_of_one_function(run):
    rows = [row for row in run.report["instructions"] if row["function"] == "stall_chase"]
    rows.sort(key=lambda row: int(row["pc"], 16))
    bars = heights(plot.function_profile(run, "stall_chase", profilers=["tip"]))
    assert bars["oracle"] == pytest.approx([100 * row["share"] for row in rows])
    assert bars["tip"] == pytest.approx([100 * row["shares"][0] for row in rows])
    stacks = plot.instruction_stacks(run, "stall_chase")
    widths = [sum(bars[n].get_width() for bars in stacks.containers) for n in range(len(rows))]
    assert widths == pytest.approx([100 * row["share"] for row in reversed(rows)], rel=1e-6)
    same = heights(plot.difference(run, run, "quickstart"))
    assert len(same["Execution"]) == 10
    axes = plot.pipeline(run.trace.records(start=f"{run.trace.cycles[1] - 2000}c"))
    first = min(start for row in pl.DataFrame(run.trace.records(start=f"{run.trace.cycles[1] - 2000}c")).to_dicts() if (start := row["fetch_cycle"]))
    assert axes.get_xlabel() == f"Cycle after {first:,}" and axes.get_xlim()[1] < 3000
    assert {bars.get_label() for bars in axes.containers} >= {"fetch", "decode", "complete"}
    with pytest.raises(ValueError, match="function: expected one whose instructions are in the report, found nowhere"):
        plot.instruction_stacks(run, "nowhere")
    with pytest.raises(ValueError, match="level: expected one of function, block, instruction, found line"):
        plot.errors(run, "line")
    with pytest.raises(ValueError, match="profilers: expected some of tip, .*, found none-such"):
        plot.errors(run, profilers=["none-such"])
    plt.close("all")


def test_long_names_fit(run, monkeypatch):
    """Names of C++ templates leave room for the figure, and as many rows as there are have room, too."""
    name = "std::_Hashtable<" + ", ".join(["std::basic_string<char>"] * 20) + ">::_M_find_before_node(unsigned long, unsigned long) const"
    assert plot._short(name, 60) == "std::_Hashtable<…>::_M_find_before_node(…) const"
    assert plot._short("f<a->b>()", 8) == "f<…>()" and plot._short("(anonymous namespace)::at", 40) == "(anonymous namespace)::at"
    functions = pl.DataFrame(run.functions()).with_columns(pl.format("{}{}", pl.lit(name), pl.col("function")).alias("function"))
    monkeypatch.setattr(type(run), "functions", lambda self: functions)
    axes = plot.difference(run, run)
    assert max(len(label.get_text()) for label in axes.get_xticklabels()) <= 40
    rows = run.trace.records(start=f"{run.trace.cycles[1] - 4000}c")
    count = len(pl.DataFrame(rows))
    assert count > 40
    assert plot.pipeline(rows).figure.get_figheight() >= min(0.2 * count, 100)
    plt.close("all")


def test_a_clone_is_built_once(run, tmp_path, binary, monkeypatch):
    """The first run of a process builds by the clone's script; later ones take what was built, whatever the script does by then."""
    clone = tmp_path / "clone"
    for folder in ["scripts", "guest-sw", "target/release"]:
        (clone / folder).mkdir(parents=True)
    (clone / "guest-sw/build").touch()
    (clone / "target/release/tipsim").symlink_to(binary)
    script = clone / "scripts/run-spec"
    script.write_text(f'#!/bin/sh\necho built >> {clone}/builds\nexec {binary} run "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("TIPSIM", str(clone))
    monkeypatch.delenv("CARGO_TARGET_DIR", raising=False)
    for number in range(3):
        tipsim.run(run.folder.parent / "small.toml", tmp_path / str(number), set={"record.trace": False})
    assert (clone / "builds").read_text() == "built\n"


@pytest.mark.parametrize("name", ["errors", "hot-loop"])
def test_notebooks(run, python_folder, monkeypatch, name):
    monkeypatch.setenv("TIPSIM_RUN", str(run.folder.resolve()))
    notebook = nbformat.read(python_folder / f"notebooks/{name}.ipynb", as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in cells), f"{name}: commit it without outputs"
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": pathlib.Path.cwd()}}).execute()
    figures = [output for cell in cells for output in cell.outputs if "image/png" in output.get("data", {})]
    assert len(figures) >= 3
