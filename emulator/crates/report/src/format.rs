//! Versions of the files of a report, and what becomes of files of later versions.

use serde_json::Value;

/// Version of `report.json`.
pub const REPORT_FORMAT: u32 = 1;
/// Version of `flame.json`.
pub const FLAME_FORMAT: u32 = 1;

/// A file of a report has a format that this reader does not know.
#[derive(Debug, thiserror::Error)]
#[error(
    "format: expected at most {expected}, found {found}: read it with the newer tipsim that wrote it, or write it anew with this one \
     (`tipsim report DIR --rebuild`)"
)]
pub struct UnknownFormat {
    /// The last format that this reader knows.
    expected: u32,
    /// The file's `format`.
    found: Value,
}

/// Checks that a file of a report has a format up to `expected`. A file without a format is of before there were any.
///
/// # Errors
/// If the file's format is a later one, or no number.
pub fn check_format(file: &Value, expected: u32) -> Result<(), UnknownFormat> {
    let Some(found) = file.get("format") else {
        return Ok(());
    };
    match found.as_u64() {
        Some(format) if format <= u64::from(expected) => Ok(()),
        _ => Err(UnknownFormat { expected, found: found.clone() }),
    }
}

#[cfg(test)]
mod tests {
    use profile::synthetic::evaluation;
    use serde_json::json;

    use super::*;
    use crate::Run;
    use crate::tests::report_of;

    #[test]
    fn older_files_are_read_and_later_ones_are_not() {
        for known in [json!({}), json!({ "format": 0 }), json!({ "format": 1 }), json!([])] {
            check_format(&known, 1).unwrap();
        }
        for unknown in [json!(2), json!(-1), json!("1"), json!(null)] {
            let error = check_format(&json!({ "format": unknown }), 1).unwrap_err().to_string();
            let expected = format!("format: expected at most 1, found {unknown}: ");
            assert!(error.starts_with(&expected) && error.contains("--rebuild"), "{error}");
        }
    }

    #[test]
    fn a_report_begins_with_its_format() {
        let report = report_of(&evaluation(), None);
        let text = report.json_text().unwrap();
        assert!(text.starts_with("{\n  \"format\": 1,\n  \"categories\": ["), "{}", &text[..60]);
        assert!(text.ends_with("\n}\n"));
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read, serde_json::from_str::<Value>(&report.json().to_string()).unwrap());
        check_format(&read, REPORT_FORMAT).unwrap();
        serde_json::from_value::<Run>(read).unwrap();
        let flame = serde_json::to_string(&crate::FlameFile::new(&report.common.flame)).unwrap();
        assert!(flame.starts_with("{\"format\":1,\"names\":["), "{}", &flame[..30]);
    }
}
