//! Evaluations and excerpts as files, from which a report is made anew.
//!
//! A file is one zstd frame with a checksum. It holds a stamp, which says what the content was made by and of, and then the content as
//! MessagePack, with fields by name. A file is another program's input: whatever it holds, reading it ends in a content that holds
//! together or in an error.

use std::io::{self, BufReader, BufWriter, Read, Write};

use critical_path::Excerpts;
use profile::Evaluation;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// zstd's: a third of a second for the quickstart.
const LEVEL: i32 = 1;
/// Bytes of a piece on its way through zstd, whose own many small reads and writes are slow.
const PIECE: usize = 1 << 16;

/// What can be stored.
pub trait Stored: Serialize + DeserializeOwned {
    /// Checks that the content is consistent.
    ///
    /// # Errors
    /// The field, what was expected of it and what was found.
    fn check(&self) -> Result<(), String>;
}

impl Stored for Evaluation {
    fn check(&self) -> Result<(), String> {
        self.check()
    }
}

impl Stored for Excerpts {
    fn check(&self) -> Result<(), String> {
        self.check()
    }
}

/// Why nothing was read.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// The content was made by something else, or of something else.
    #[error("it is of another simulator or another trace")]
    OtherStamp,
    /// The host cannot read the file, or the frame is damaged.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The content is not what its stamp says.
    #[error("it is damaged: {0}")]
    Damaged(String),
}

/// Writes a content under a stamp.
///
/// # Errors
/// If the output cannot be written.
pub fn write(output: impl Write, stamp: &[u8], content: &impl Stored) -> io::Result<()> {
    let mut encoder = zstd::Encoder::new(BufWriter::new(output), LEVEL)?;
    encoder.include_checksum(true)?;
    let mut pieces = BufWriter::with_capacity(PIECE, encoder);
    pieces.write_all(stamp)?;
    let mut serializer = rmp_serde::Serializer::new(&mut pieces).with_struct_map();
    content.serialize(&mut serializer).map_err(io::Error::other)?;
    let encoder = pieces.into_inner().map_err(|e| e.into_error())?;
    encoder.finish()?.flush()
}

/// Reads the content that was written under this stamp.
///
/// # Errors
/// See [`StoredError`].
pub fn read<T: Stored>(input: impl Read, stamp: &[u8]) -> Result<T, StoredError> {
    let mut pieces = BufReader::with_capacity(PIECE, zstd::Decoder::new(input)?);
    // Content under another stamp is not worth reading.
    let mut found = vec![0; stamp.len()];
    pieces.read_exact(&mut found)?;
    if found != stamp {
        return Err(StoredError::OtherStamp);
    }
    let damaged = |error: rmp_serde::decode::Error| StoredError::Damaged(error.to_string());
    let content: T = rmp_serde::from_read(&mut pieces).map_err(damaged)?;
    // zstd compares the checksum at the frame's end.
    let more = io::copy(&mut pieces.take(1), &mut io::sink())?;
    if more > 0 {
        return Err(StoredError::Damaged("more after the content".into()));
    }
    content.check().map_err(StoredError::Damaged)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use profile::synthetic::evaluation;
    use serde_json::{Value, json};

    use super::*;

    const STAMP: &[u8] = b"a stamp";

    fn stored(content: &impl Stored) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, STAMP, content).unwrap();
        bytes
    }

    fn error<T: Stored + std::fmt::Debug>(bytes: &[u8], stamp: &[u8]) -> String {
        read::<T>(bytes, stamp).unwrap_err().to_string()
    }

    /// The synthetic evaluation with another value in one place.
    fn changed(place: &str, value: Value) -> Evaluation {
        let mut content = serde_json::to_value(evaluation()).unwrap();
        *content.pointer_mut(place).unwrap() = value;
        serde_json::from_value(content).unwrap()
    }

    #[test]
    fn what_was_written_is_read() {
        let bytes = stored(&evaluation());
        assert_eq!(read::<Evaluation>(&*bytes, STAMP).unwrap(), evaluation());
        assert_eq!(
            error::<Evaluation>(&bytes, b"another"),
            "it is of another simulator or another trace"
        );
    }

    #[test]
    fn damage_is_an_error_wherever_it_is() {
        let bytes = stored(&evaluation());
        for cut in 0..bytes.len() {
            assert!(read::<Evaluation>(&bytes[..cut], STAMP).is_err(), "{cut}");
        }
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            let found = read::<Evaluation>(&*flipped, STAMP);
            // Some bits of a frame's header mean nothing.
            assert!(found.is_err() || found.unwrap() == evaluation(), "{at}");
        }
        let excerpts = stored(&Excerpts::default());
        assert!(error::<Evaluation>(&excerpts, STAMP).starts_with("it is damaged: "));
    }

    #[test]
    fn an_evaluation_that_does_not_hold_together_is_an_error() {
        let inst_11_of_11 = json!([11, 1]);
        let leaf_17_of_17 = json!({ "width": 4, "by_process": [[17, 1]], "windows": [] });
        for (place, value, expected) in [
            ("/idle", json!(21_001), "idle: expected at most 21000 cycles, found 21001"),
            (
                "/cycles",
                json!(1u64 << 60),
                "cycles: expected at most 1125899906842624, found 1152921504606846976",
            ),
            ("/processes/1/id", json!(2), "processes: expected them in the order of their numbers"),
            ("/first_use", json!([]), "first_use: expected 11 instructions, found 0"),
            ("/spaces/2", json!(3), "spaces: expected a number of a process below 3, found 3"),
            (
                "/oracle/processes/0",
                inst_11_of_11,
                "oracle: expected a number of an instruction below 11, found 11",
            ),
            (
                "/oracle/processes/0",
                json!([0, 1]),
                "oracle: expected 16800000 units, found 16800001",
            ),
            ("/oracle/units_per_cycle", json!(0), "oracle: expected 840 units per cycle, found 0"),
            (
                "/samplers/0/sampler/schedule/period",
                json!(0),
                "sampler tip: expected a period of at least 1, found 0",
            ),
            (
                "/samplers/0/samples",
                json!(u64::MAX),
                "sampler tip: expected at most 1125899906842624, found 18446744073709551615",
            ),
            (
                "/stacks/by_process/0",
                json!([21, 1]),
                "stacks: expected a number of a kind below 21, found 21",
            ),
        ] {
            let bytes = stored(&changed(place, value));
            let expected = format!("it is damaged: {expected}");
            assert_eq!(error::<Evaluation>(&bytes, STAMP), expected, "{place}");
        }
        let mut content = serde_json::to_value(evaluation()).unwrap();
        content["top_down"] = leaf_17_of_17;
        let content: Evaluation = serde_json::from_value(content).unwrap();
        assert_eq!(
            error::<Evaluation>(&stored(&content), STAMP),
            "it is damaged: top_down: expected a number of a kind below 17, found 17"
        );
    }
}
