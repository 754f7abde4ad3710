"""Tables, as every library reads them."""

import csv
import io
import subprocess

import duckdb
import pandas
import polars as pl
import pyarrow as pa
import pytest

import tipsim

OF_REPORT = ["processes", "errors", "functions", "instructions", "loops", "top_down", "windows", "counters"]


def test_libraries_agree(run):
    """pyarrow, polars, DuckDB and pandas read the same rows, as often as they like."""
    tables = {name: getattr(run, name)() for name in OF_REPORT}
    middle = sum(run.trace.cycles) // 2
    part = {"start": f"{middle}c", "end": f"{middle + 20_000}c"}
    tables |= {name: getattr(run.trace, name)(**part) for name in ["records", "spans"]}
    tables["static_instructions"] = run.trace.static_instructions()
    assert set(tables) == set(tipsim.schema()) - {"samples"}
    for name, table in tables.items():
        rows_of = table
        expected = pa.table(table).to_pylist()
        assert expected, f"{name} is empty"
        assert pl.DataFrame(table).to_dicts() == expected, name
        in_duckdb = duckdb.sql("select * from rows_of").fetchall()
        assert [dict(zip(table.columns, row)) for row in in_duckdb] == expected, name
        frame = pandas.DataFrame.from_arrow(table)
        assert list(frame.columns) == table.columns and len(frame) == len(expected), name
        for column in frame.columns:
            assert all(same(value, row[column]) for value, row in zip(frame[column], expected)), (name, column)


def same(found, expected):
    """Whether pandas' value is Arrow's: it has NaN for null, and doubles for integers beside them."""
    if isinstance(expected, list):
        return list(found) == expected
    if expected is None:
        return pandas.isna(found)
    return found == (float(expected) if isinstance(found, float) else expected)


def test_columns_are_for_sql(run):
    """No name wants quotes, and a difference of cycles may be negative."""
    for name in OF_REPORT:
        rows_of = getattr(run, name)()
        duckdb.sql(f"select {', '.join(rows_of.columns)} from rows_of").fetchall()
    records = run.trace.records(end=2000)
    gaps = f"select dispatch - lag(commit) over (order by record) as gap from (select {', '.join(records.columns)} from records)"
    assert duckdb.sql(f"select min(gap) from ({gaps})").fetchall()[0][0] < 0
    frame = pl.DataFrame(records)
    assert (frame["dispatch"] - frame["commit"]).min() < 0


def test_columns_are_described(run):
    described = tipsim.schema()
    for name in OF_REPORT:
        schema = pa.schema(getattr(run, name)())
        columns = {column.name: column for column in described[name].columns}
        for field in schema:
            column = columns.get(field.name) or described[name].columns[-1]
            assert field.metadata[b"about"].decode() == column.about
            assert field.metadata.get(b"unit", b"").decode() == column.unit
            assert field.nullable == column.nullable
    assert "cycles: int64 [cycles]: length; 1 if computing" in str(described["spans"])


def test_records_are_those_of_the_command_line(run, binary):
    first = pa.table(next(iter(run.trace.records())))["record"][0].as_py()
    places = (first + 1000, first + 6000)
    arguments = ["--format", "csv", "--from", str(places[0]), "--to", str(places[1])]
    done = subprocess.run([binary, "trace", "expand", run.trace.path, *arguments], check=True, capture_output=True, text=True)
    expected = list(csv.DictReader(io.StringIO(done.stdout)))
    rows = pa.table(run.trace.records(start=places[0], end=places[1])).to_pylist()
    assert [row["record"] for row in rows] == list(range(*places)) and len(expected) == 5000
    for row, wanted in zip(rows, expected):
        for column in ["record", "fetch", "decode", "dispatch", "issue", "complete", "commit", "space", "privilege"]:
            value = row["fetch_cycle" if column == "fetch" else column]
            assert (value is None and wanted[column] == "") or str(value) == wanted[column], column
        assert row["pc"] == int(wanted["pc"], 16)
        for column in ["class", "wait", "redirect", "tea", "instruction"]:
            assert row[column] == wanted[column], column


def test_places(run):
    trace = run.trace
    middle = sum(trace.cycles) // 2
    at = lambda start: pa.table(trace.records(start=start, end=f"{middle + 5000}c")).to_pylist()
    by_cycle = at(f"{middle}c")
    assert min(row["commit"] for row in by_cycle) >= middle
    assert at(by_cycle[0]["record"]) == by_cycle
    # A nanosecond may be a few cycles later.
    by_time = at(f"{middle * 10**9 // trace.clock_hz + 1}ns")
    assert len(by_cycle) - len(by_time) < 20 and by_time == by_cycle[-len(by_time):]
    spans = pa.table(trace.spans(start=f"{middle}c", end=f"{middle + 5000}c"))
    assert spans["start"][0].as_py() <= middle < spans["start"][1].as_py()


def test_what_is_wrong_is_said(run, tmp_path):
    trace = run.trace
    with pytest.raises(ValueError, match=r'start: expected a record \(1000\), a cycle \(1000c\) or a time \(1.5ms\), found "soon"'):
        trace.records(start="soon")
    for start, end in [(10, 5), ("1000c", "10c"), ("2us", "1us")]:
        with pytest.raises(ValueError, match="end: expected a place that is not before start"):
            trace.records(start=start, end=end)
    with pytest.raises(ValueError, match="hart: expected 0, the only hart, found 1"):
        trace.spans(1)
    with pytest.raises(ValueError, match="spans: expected cycles or times as range, found the number of a record"):
        trace.spans(start=5)
    with pytest.raises(tipsim.Error, match="which is complete"):
        iter(trace.records(start=f"{trace.cycles[1] + 10**9}c"))
    with pytest.raises(tipsim.Error, match="missing.tip: No such file"):
        tipsim.Trace(tmp_path / "missing.tip")
    with pytest.raises(tipsim.Error, match="run.json: No such file"):
        tipsim.Run(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(tipsim.Error, match="run.json: .*line 1 column 2"):
        tipsim.Run(tmp_path)
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(tipsim.Error, match="run.json: expected an object, found list"):
        tipsim.Run(tmp_path)
    with pytest.raises(ValueError, match="command: expected a program or a script, found ''"):
        tipsim.profile("")
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "report.json").write_text('{"processes": [{"name": "a"}]}')
    with pytest.raises(tipsim.Error, match=r"/report.json: processes\[0\]: missing field `class`"):
        tipsim.Run(tmp_path).processes()
    (tmp_path / "text.tip").write_text("nothing of a trace")
    with pytest.raises(tipsim.Error, match="not a trace"):
        tipsim.Trace(tmp_path / "text.tip")


def test_one_of_several_harts(run, tmp_path):
    (tmp_path / "run.json").write_text('{"harts": [{}, {}]}')
    (tmp_path / "hart1").mkdir()
    (tmp_path / "hart1/report.json").write_bytes((run.folder / "report.json").read_bytes())
    one = tipsim.Run(tmp_path, hart=1)
    assert one.report == run.report and "hart 1" in repr(one)
    assert pa.table(one.processes()).equals(pa.table(run.processes()))
    assert tipsim.Run(run.folder, hart=0).report == run.report
    with pytest.raises(ValueError, match="hart: expected 0 to 1, found 2"):
        tipsim.Run(tmp_path, hart=2)
    with pytest.raises(ValueError, match="hart: expected 0, the only hart, found 1"):
        tipsim.Run(run.folder, hart=1)


def test_a_damaged_trace_gives_what_is_before(run, tmp_path):
    whole = run.trace.path.read_bytes()
    damaged = tmp_path / "damaged.tip"
    damaged.write_bytes(whole[: len(whole) // 2] + bytes(64) + whole[len(whole) // 2 + 64 :])
    rows = 0
    with pytest.raises(tipsim.Error, match="damaged.tip: damaged at offset"):
        for batch in tipsim.Trace(damaged).records():
            rows += len(batch)
    assert 0.2 * run.trace.record_count < rows < run.trace.record_count
    with pytest.raises(Exception, match="damaged at offset"):
        pa.table(tipsim.Trace(damaged).records())


def test_a_cut_trace_is_read_with_a_warning(run, tmp_path):
    cut = tmp_path / "cut.tip"
    whole = run.trace.path.read_bytes()
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.warns(tipsim.TraceWarning, match="cut.tip: cut at offset .*; read up to there"):
        trace = tipsim.Trace(cut)
    spans = sum(len(batch) for batch in trace.spans())
    assert 0 < spans < sum(len(batch) for batch in run.trace.spans())
