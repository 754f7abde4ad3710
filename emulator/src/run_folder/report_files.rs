//! Reading the files of a report: `report.json` and `flame.json`, of all harts or of one.

use report::{FLAME_FORMAT, Flame, REPORT_FORMAT, check_format};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Results;
use super::evaluation::name;
use crate::failure::{BadInput, bad_input};

/// A report's flame graph, for comparisons.
pub(crate) const FLAME: &str = "flame.json";
/// A report with all its numbers.
pub(crate) const REPORT: &str = "report.json";

/// Returns the report of a run, or of one of its harts.
///
/// # Errors
/// If there is none, or it has a later format than this simulator's.
pub(crate) fn report(run: &Results, hart: Option<u32>) -> Result<Value, BadInput> {
    known(run, &name(hart, REPORT), REPORT_FORMAT)
}

/// Returns what somebody needs of a report, such as a comparison.
///
/// # Errors
/// If there is no report, it has a later format than this simulator's, or it lacks something.
pub(crate) fn part_of_report<T: DeserializeOwned>(
    run: &Results,
    hart: Option<u32>,
) -> Result<T, BadInput> {
    typed(run, &name(hart, REPORT), REPORT_FORMAT)
}

/// Returns the flame graph of a report.
///
/// # Errors
/// If there is none, or it has a later format than this simulator's.
pub(crate) fn flame(run: &Results, hart: Option<u32>) -> Result<Flame, BadInput> {
    let name = name(hart, FLAME);
    if !run.has(&name) {
        let error = "no such file; `tipsim report DIR --rebuild` writes it";
        return Err(bad_input(&run.path().join(name), error));
    }
    typed(run, &name, FLAME_FORMAT)
}

fn known(run: &Results, name: &str, format: u32) -> Result<Value, BadInput> {
    let file: Value = run.json(name)?;
    check_format(&file, format).map_err(|e| bad_input(&run.path().join(name), e))?;
    Ok(file)
}

fn typed<T: DeserializeOwned>(run: &Results, name: &str, format: u32) -> Result<T, BadInput> {
    let file = known(run, name, format)?;
    serde_json::from_value(file).map_err(|e| bad_input(&run.path().join(name), e))
}

#[cfg(test)]
mod tests {
    use report::Run;

    use super::*;

    #[test]
    fn a_report_of_a_later_format_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let run = Results::open(folder.path()).unwrap();
        let flame_without_format = r#"{"names": [], "columns": [], "lines": [], "callers": []}"#;
        write(FLAME, flame_without_format);
        write(REPORT, "{}");
        flame(&run, None).unwrap();
        report(&run, None).unwrap();
        assert!(
            part_of_report::<Run>(&run, None)
                .is_err_and(|e| e.to_string().contains("missing field"))
        );
        for name in [FLAME, REPORT] {
            write(name, r#"{"format": 1000}"#);
        }
        let errors = [
            flame(&run, None).unwrap_err(),
            report(&run, None).unwrap_err(),
            part_of_report::<Run>(&run, None).unwrap_err(),
        ];
        for error in errors.map(|error| error.to_string()) {
            assert!(error.contains("format: expected at most 1, found 1000"), "{error}");
        }
    }
}
