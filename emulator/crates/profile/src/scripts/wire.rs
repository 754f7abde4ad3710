//! The simulator's own side-band records: frames of interpreted programs. Numbers are of 4 bytes, little-endian.

/// Types of side-band records from this on are the simulator's own: a guest that writes one is not believed.
pub const MIN_KIND: u8 = 128;
const FUNCTION: u8 = MIN_KIND;
const WINDOW: u8 = MIN_KIND + 1;
const SAMPLE: u8 = MIN_KIND + 2;

/// A frame of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptFrame {
    /// Number of the function; [`ScriptFrame::OTHER`] if it has none.
    pub function: u32,
    /// Line that the function is at; 0 if it is not known.
    pub line: u32,
}

impl ScriptFrame {
    /// Number of functions that are not told apart.
    pub const OTHER: u32 = u32::MAX;
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptRecord {
    /// A function, which gets the next number of this hart's stream, from 0 up. It comes before the first sample that has it.
    Function {
        /// Qualified name.
        name: String,
        /// Source file.
        file: String,
        /// First line.
        line: u32,
    },
    /// A window begins: the next sample tells how many cycles its instructions take.
    Window,
    /// The frames of the thread that runs, which is one of an interpreter.
    Sample {
        /// Instructions for which the sample stands.
        instructions: u32,
        /// Frames, innermost first; none outside of all functions.
        frames: Vec<ScriptFrame>,
    },
}

impl ScriptRecord {
    /// The record's type and bytes.
    ///
    /// ```
    /// use profile::{ScriptFrame, ScriptRecord};
    ///
    /// let frames = vec![ScriptFrame { function: 3, line: 14 }];
    /// let sample = ScriptRecord::Sample { instructions: 4096, frames };
    /// let (kind, bytes) = sample.encode();
    /// assert_eq!((bytes.len(), ScriptRecord::parse(kind, &bytes)), (12, Some(sample)));
    /// ```
    pub fn encode(&self) -> (u8, Vec<u8>) {
        match self {
            Self::Function { name, file, line } => {
                let mut bytes = line.to_le_bytes().to_vec();
                bytes.extend((name.len() as u32).to_le_bytes());
                bytes.extend(name.bytes().chain(file.bytes()));
                (FUNCTION, bytes)
            }
            Self::Window => (WINDOW, Vec::new()),
            Self::Sample { instructions, frames } => {
                let mut bytes = instructions.to_le_bytes().to_vec();
                for ScriptFrame { function, line } in frames {
                    bytes.extend(function.to_le_bytes());
                    bytes.extend(line.to_le_bytes());
                }
                (SAMPLE, bytes)
            }
        }
    }

    /// The record of this type and these bytes; `None` if there is none.
    pub fn parse(kind: u8, bytes: &[u8]) -> Option<Self> {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let (numbers, _) = bytes.as_chunks::<4>();
        let mut numbers = numbers.iter().map(|bytes| u32::from_le_bytes(*bytes));
        Some(match kind {
            FUNCTION => {
                let (line, length) = (numbers.next()?, numbers.next()? as usize);
                let (name, file) = bytes.get(8..)?.split_at_checked(length)?;
                Self::Function { name: text(name), file: text(file), line }
            }
            WINDOW => Self::Window,
            SAMPLE => {
                let instructions = numbers.next()?;
                let mut frames = Vec::with_capacity(bytes.len() / 8);
                while let (Some(function), Some(line)) = (numbers.next(), numbers.next()) {
                    frames.push(ScriptFrame { function, line });
                }
                Self::Sample { instructions, frames }
            }
            _ => return None,
        })
    }
}
