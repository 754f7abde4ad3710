use std::io::Cursor;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use commit_trace::expand::{Csv, expand};
use commit_trace::synthetic::{SyntheticCore, batches_of, staged};
use commit_trace::{HartId, Position, Range, Seq, TraceReader, TraceWriter};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use profile::{Evaluator, Region, UNITS_PER_CYCLE};
use serde_json::{Value, json};

use super::*;

/// A trace of several chunks: what a core did, in bytes.
fn trace(words: u32) -> Vec<u8> {
    let words: Vec<u32> = (0..words).map(|n| n.wrapping_mul(2_654_435_761)).collect();
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(&mut bytes, "test".into(), "{}").unwrap();
    for batch in batches_of(SyntheticCore::by_rows(4), &words) {
        writer.batch(&staged(batch)).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

fn reader(bytes: &[u8]) -> TraceReader<Cursor<Vec<u8>>> {
    TraceReader::new(Cursor::new(bytes.to_vec()), "test".into()).unwrap()
}

fn text(raw: u32, pc: u64) -> String {
    format!("{raw:x} {pc:x}")
}

fn table(table: &Table, bytes: &[u8], range: Range) -> TraceTable<Cursor<Vec<u8>>> {
    TraceTable::new(table, reader(bytes), HartId(0), range, Box::new(text)).unwrap()
}

fn batches(rows: impl Iterator<Item = Result<RecordBatch, ArrowError>>) -> Vec<RecordBatch> {
    rows.map(Result::unwrap).collect()
}

/// All values of a column as text, nulls empty.
fn column(batches: &[RecordBatch], name: &str) -> Vec<String> {
    let mut values = Vec::new();
    for batch in batches {
        let column = batch.column_by_name(name).unwrap();
        for row in 0..batch.num_rows() {
            values.push(match column.data_type() {
                _ if column.is_null(row) => String::new(),
                arrow_schema::DataType::UInt64 => {
                    column.as_primitive::<UInt64Type>().value(row).to_string()
                }
                arrow_schema::DataType::Int64 => {
                    column.as_primitive::<Int64Type>().value(row).to_string()
                }
                arrow_schema::DataType::UInt32 => {
                    column.as_primitive::<UInt32Type>().value(row).to_string()
                }
                arrow_schema::DataType::Boolean => column.as_boolean().value(row).to_string(),
                arrow_schema::DataType::Dictionary(..) => {
                    let names = column.as_dictionary::<arrow_array::types::Int32Type>();
                    let key = names.keys().value(row) as usize;
                    names.values().as_string::<i32>().value(key).to_owned()
                }
                other => panic!("{name}: {other}"),
            });
        }
    }
    values
}

const PART: Range =
    Range { from: Position::Record(Seq(300_000)), to: Some(Position::Record(Seq(300_500))) };

#[test]
fn records_are_those_of_csv() {
    let bytes = trace(310_000);
    for range in [Range::ALL, PART] {
        let mut csv = Vec::new();
        let disassemble = |info: &commit_trace::StaticInfo| text(info.raw, info.pc);
        let mut sink = Csv::new(&mut csv, &disassemble);
        let _ = expand(&mut reader(&bytes), HartId(0), &range, &mut sink).unwrap();
        drop(sink);
        let csv = String::from_utf8(csv).unwrap();
        let mut lines = csv.lines();
        let names: Vec<&str> = lines.next().unwrap().split(',').collect();
        let found = batches(table(&RECORDS, &bytes, range));
        assert!(found.len() > 1 || range == PART);
        let columns = [
            "record",
            "fetch_cycle",
            "decode",
            "dispatch",
            "issue",
            "complete",
            "commit",
            "space",
            "class",
            "wait",
            "redirect",
            "first_of_row",
            "tea",
            "instruction",
        ]
        .map(|name| {
            // CSV calls the cycle of fetch `fetch`, which would want quotes in SQL.
            let in_csv = name.strip_suffix("_cycle").unwrap_or(name);
            let at = names.iter().position(|known| *known == in_csv).unwrap();
            (name, at, column(&found, name))
        });
        let mut rows = 0;
        for line in lines {
            let cells: Vec<&str> = line.split(',').collect();
            for (name, at, values) in &columns {
                assert_eq!(values[rows], cells[*at], "{name} of row {rows}");
            }
            rows += 1;
        }
        assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), rows);
        assert_eq!(rows, if range == PART { 500 } else { columns[0].2.len() });
    }
}

#[test]
fn spans_add_up_to_the_oracle() {
    let bytes = trace(300_000);
    let mut evaluator = Evaluator::new(&[], Region::Whole);
    let (mut reader, mut batch) = (reader(&bytes), commit_trace::Batch::default());
    while reader.next_batch(&mut batch).unwrap() {
        evaluator.batch(&batch).unwrap();
    }
    let evaluation = evaluator.finish();

    let code = batches(table(&STATIC_INSTRUCTIONS, &bytes, Range::ALL));
    let numbers = column(&code, "inst");
    assert_eq!(numbers.len(), evaluation.static_info.len());
    assert!(numbers.iter().enumerate().all(|(at, inst)| *inst == at.to_string()));
    let mut units = vec![0; numbers.len()];
    let mut cycle = 1;
    for batch in batches(table(&SPANS, &bytes, Range::ALL)) {
        let of = |name| batch.column_by_name(name).unwrap();
        let start = of("start").as_primitive::<Int64Type>();
        let cycles = of("cycles").as_primitive::<Int64Type>();
        let insts = of("insts").as_list::<i32>();
        for row in 0..batch.num_rows() {
            assert_eq!(start.value(row), cycle);
            cycle += cycles.value(row);
            let charged = insts.value(row);
            let charged = charged.as_primitive::<UInt32Type>().values();
            for inst in charged {
                let cycles = cycles.value(row) as u64;
                units[*inst as usize] += cycles * UNITS_PER_CYCLE / charged.len() as u64;
            }
        }
    }
    assert_eq!((cycle - 1) as u64, evaluation.stream_cycles);
    assert!(units.iter().sum::<u64>() > 0);
    let mut oracle = vec![0; units.len()];
    for (_, inst, weight) in evaluation.oracle.iter() {
        oracle[inst.0 as usize] += weight;
    }
    assert_eq!(units, oracle);
}

#[test]
fn a_range_of_cycles_has_the_spans_that_reach_into_it() {
    let bytes = trace(300_000);
    let all = batches(table(&SPANS, &bytes, Range::ALL));
    let (start, cycles) = (column(&all, "start"), column(&all, "cycles"));
    let number = |text: &String| text.parse::<u64>().unwrap();
    let long = cycles.iter().rposition(|cycles| number(cycles) > 2).unwrap();
    let from = number(&start[long]) + 1;
    let range = Range { from: Position::Cycle(from), to: Some(Position::Cycle(from + 1)) };
    let found = batches(table(&SPANS, &bytes, range));
    assert_eq!(column(&found, "start"), [start[long].clone()]);

    let refused = TraceTable::new(&SPANS, reader(&bytes), HartId(0), PART, Box::new(text));
    assert!(matches!(refused, Err(TraceTableError::NotByRecord("spans"))));
    let refused = TraceTable::new(&ERRORS, reader(&bytes), HartId(0), PART, Box::new(text));
    assert!(matches!(refused, Err(TraceTableError::NotOfATrace("errors"))));
}

#[test]
fn what_comes_before_damage_is_there_and_then_the_error() {
    let mut bytes = trace(600_000);
    let second = reader(&bytes).chunks()[1];
    bytes[second.offset as usize + 3000] ^= 1;
    let before = second.first_seq.0 as usize;

    let mut rows = 0;
    let mut errors = Vec::new();
    for batch in table(&RECORDS, &bytes, Range::ALL) {
        match batch {
            Ok(batch) => rows += batch.num_rows(),
            Err(error) => errors.push(error.to_string()),
        }
    }
    assert_eq!((rows, errors.len()), (before, 1));
    assert!(errors[0].contains("damaged"), "{errors:?}");

    let mut broken = table(&RECORDS, &bytes, Range::ALL);
    let mut file = Vec::new();
    let written = write_table(broken.rows_before_error(), FileFormat::Parquet, &mut file).unwrap();
    assert_eq!(written, before as u64);
    assert!(broken.end().1.is_err());
    let file = parquet_file(file);
    assert_eq!(file.iter().map(RecordBatch::num_rows).sum::<usize>(), before);
}

fn parquet_file(bytes: Vec<u8>) -> Vec<RecordBatch> {
    let path = std::env::temp_dir().join(format!("tables-{}.parquet", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    batches(reader.build().unwrap())
}

#[test]
fn files_have_the_rows_and_say_their_units() {
    let bytes = trace(70_000);
    for table_of in TRACE_TABLES {
        let found = batches(table(table_of, &bytes, Range::ALL));
        let mut file = Vec::new();
        write_table(table(table_of, &bytes, Range::ALL), FileFormat::Parquet, &mut file).unwrap();
        let read = parquet_file(file);
        let schema = table_of.schema(&[]);
        assert_eq!(read[0].schema().fields(), schema.fields());
        let rows =
            |batches: &[RecordBatch]| -> usize { batches.iter().map(RecordBatch::num_rows).sum() };
        assert_eq!(rows(&read), rows(&found));

        let mut stream = Vec::new();
        write_table(table(table_of, &bytes, Range::ALL), FileFormat::Arrow, &mut stream).unwrap();
        let read = arrow_ipc::reader::StreamReader::try_new(Cursor::new(stream), None).unwrap();
        assert_eq!(read.schema(), schema);
        assert_eq!(batches(read), found);
    }
    let schema = SPANS.schema(&[]);
    let cycles = schema.field_with_name("cycles").unwrap();
    assert_eq!(cycles.metadata()["unit"], "cycles");
}

/// A report of one process with one of everything.
fn report() -> Value {
    let stack = [0.5, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05];
    let levels = ["function", "block", "instruction"]
        .map(|level| (level.to_owned(), json!({"error": 0.25, "sampling": 0.1})));
    let levels = Value::Object(levels.into_iter().collect());
    let code = json!({"process": 0, "pc": "ffffffff80000000", "function": "f", "label": "f+0x4",
        "inlined": ["g"], "source": null, "text": "nop", "cycles": 10.5, "share": 1.0, "stack": stack,
        "store_queue": 0.0, "shares": [0.75, null]});
    json!({
        "columns": [
            {"name": "tip", "profiler": "tip", "schedule": {"period": 199}},
            {"name": "guest_tip", "profiler": null, "schedule": null},
        ],
        "processes": [{"name": "all", "pid": null, "class": "stall", "cycles": 10.5, "share": 1.0,
            "stack": stack, "samples": [3.0, 0.0], "errors": [levels, null]}],
        "modules": [{"path": "/bin/f"}],
        "functions": [{"process": 0, "module": 0, "name": "f", "cycles": 10.5, "share": 1.0,
            "stack": stack, "store_queue": 0.0, "shares": [0.75, 0.5]}],
        "instructions": [code],
        "loops": {"loops": [{"process": 0, "function": "f", "label": "f+0x4", "source": "f.c:1",
            "depth": 0, "cycles": 9.0, "share": 0.9, "own_share": 0.9, "iterations": 3.0, "trips": null,
            "measured": 2, "cycles_per_iteration": 3.0, "instructions_per_iteration": 1.0,
            "least": {"decode": 1.0, "int": 1.0, "mem": 0.0, "fp": 0.0},
            "causes": [{"cause": "store_queue", "cycles": 2.0}]}]},
        "top_down": {
            "processes": [{"name": "all", "slots": 42, "shares": {"retiring": 0.5}}],
            "windows": [{"start": 1, "end": 11, "cycles": 10, "stacks": {"0": stack}}],
        },
    })
}

fn table_of(table: &'static Table, report: &Value, run: &Value) -> RecordBatch {
    report_table(table, report, run).unwrap()
}

#[test]
fn a_report_gives_its_tables() {
    let run = json!({"counters": {"harts": [{"INST.RET": 7}, {"INST.RET": 8}]}});
    let rows = REPORT_TABLES.map(|table| table_of(table, &report(), &run).num_rows());
    assert_eq!(rows, [1, 3, 1, 1, 1, 1, 1, 2]);
    let code = table_of(&INSTRUCTIONS, &report(), &run);
    assert_eq!(column(std::slice::from_ref(&code), "pc"), [0xffff_ffff_8000_0000u64.to_string()]);
    let tip = code.column_by_name("tip").unwrap();
    assert_eq!(tip.as_primitive::<arrow_array::types::Float64Type>().value(0), 0.75);
    assert!(code.column_by_name("guest_tip").unwrap().is_null(0));
    // A sampled run has margins.
    let mut sampled = report();
    sampled["instructions"][0]["share_margins"] =
        json!({"0": {"within_95": 0.25, "within_99_7": 0.5}});
    let code = table_of(&INSTRUCTIONS, &sampled, &run);
    let margin = code.column_by_name("tip_margin_95").unwrap();
    assert_eq!(margin.as_primitive::<arrow_array::types::Float64Type>().value(0), 0.25);
    assert!(code.column_by_name("guest_tip_margin_95").is_none());
    let functions = table_of(&FUNCTIONS, &sampled, &run);
    assert!(functions.column_by_name("tip_margin_95").unwrap().is_null(0));
    // What a run did not collect.
    let mut bare = report();
    bare["loops"] = Value::Null;
    bare["top_down"] = Value::Null;
    let rows = REPORT_TABLES.map(|table| table_of(table, &bare, &Value::Null).num_rows());
    assert_eq!(rows, [1, 3, 1, 1, 0, 0, 0, 0]);
}

/// No name wants quotes in SQL, and differences of cycles are what they are.
#[test]
fn columns_are_for_sql() {
    // Reserved in DuckDB 1 and PostgreSQL 17.
    const RESERVED: &str = " all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create \
        default deferrable desc describe distinct do else end except false fetch for foreign from grant group having in initially \
        intersect into lambda lateral leading limit not null offset on only or order pivot placing primary qualify references returning \
        select show some summarize symmetric table then to trailing true union unique unpivot user using variadic when where window \
        with ";
    let is_plain = |name: &str| {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        name.chars().all(allowed) && !RESERVED.contains(&format!(" {name} "))
    };
    for table in tables() {
        for column in table.fixed_columns() {
            assert!(is_plain(column.name), "{}.{}", table.name, column.name);
            let is_address = column.unit == "address";
            let is_unsigned = column.column_type == ColumnType::U64;
            assert_eq!(is_unsigned, is_address, "{}.{}", table.name, column.name);
        }
    }
    let mut found = report();
    let names = ["tip-ilp", "tip_ilp", "nci@800000", "8x", "oracle"];
    found["columns"] = names.map(|name| json!({"name": name})).into_iter().collect();
    let functions = table_of(&FUNCTIONS, &found, &Value::Null);
    let schema = functions.schema();
    let fields: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let fixed = FUNCTIONS.fixed_columns().count();
    assert_eq!(fields[fixed..], ["tip_ilp", "tip_ilp_", "nci_800000", "_8x", "oracle_"]);
}

#[test]
fn samples_have_what_their_event_has() {
    let rows = [
        json!({"time": 5.000000123, "comm": "work", "pid": 42, "tid": 43, "cpu": 1, "event": "loads", "period": 100,
            "ip": 0x10010, "exact": true, "symbol": "work+0x10", "addr": 0xffff_ffff_8000_0000u64, "op": "load",
            "weight": 66}),
        json!({"exact": false, "ip": "0x20"}),
    ];
    let rows = rows.map(|row| row.as_object().unwrap().clone());
    let found = batches(batches_of_rows(&SAMPLES, rows.into_iter()));
    let of = |name: &str| column(&found, name);
    assert_eq!(of("ip"), ["65552", "32"]);
    assert_eq!(of("addr"), [0xffff_ffff_8000_0000u64.to_string(), String::new()]);
    assert_eq!(
        (of("pid"), of("tid")),
        (vec!["42".into(), String::new()], vec!["43".into(), String::new()])
    );
    assert_eq!(
        (of("comm"), of("op")),
        (vec!["work".into(), String::new()], vec!["load".into(), String::new()])
    );
    assert_eq!(of("exact"), ["true", "false"]);
    assert_eq!(of("weight"), ["66", ""]);
    let time = found[0].column_by_name("time").unwrap();
    let time = time.as_primitive::<arrow_array::types::Float64Type>();
    assert_eq!((time.value(0), time.null_count()), (5.000000123, 1));
    // Only addresses are read as hexadecimal.
    let odd = json!({"exact": false, "pid": "42"}).as_object().unwrap().clone();
    let odd = batch_of_rows(&SAMPLES, &[], &[odd]).unwrap();
    assert!(odd.column_by_name("pid").unwrap().is_null(0));
}

#[test]
fn a_report_of_something_else_is_refused_and_says_where() {
    let mut broken = report();
    broken["functions"][0]["cycles"] = json!("many");
    let error = report_table(&FUNCTIONS, &broken, &Value::Null).unwrap_err();
    let expected = "report.json: functions[0]: invalid type: string \"many\", expected f64";
    assert_eq!(error.to_string(), expected);
    let mut broken = report();
    broken["processes"][0]["stack"] = json!([1]);
    assert!(report_table(&PROCESSES, &broken, &Value::Null).is_err());
    assert!(report_table(&SPANS, &broken, &Value::Null).is_err());
    for odd in [json!(1), json!([]), json!({"columns": 3, "processes": {"a": 1}})] {
        for table in REPORT_TABLES {
            let _ = report_table(table, &odd, &odd);
        }
    }
}
