//! Places in a trace, as users name them.

use std::str::FromStr;

use crate::{Position, Seq};

/// Clock of a trace that does not say: the presets' 3.2 GHz.
pub const CLOCK_HZ: u64 = 3_200_000_000;

/// A place in a trace: `1000` is a record, `1000c` a cycle, `1.5ms` guest time, counted from reset like cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A record.
    Record(u64),
    /// A cycle.
    Cycle(u64),
    /// A time: its number of units, and how many of these units a second has.
    Time(u64, u64),
}

impl Place {
    /// Returns the place in a run with this clock. A time is the first cycle by which the time has passed.
    pub fn position(self, clock_hz: u64) -> Position {
        match self {
            Self::Record(seq) => Position::Record(Seq(seq)),
            Self::Cycle(cycle) => Position::Cycle(cycle),
            Self::Time(count, per_second) => {
                let cycles = u128::from(count) * u128::from(clock_hz);
                let cycles = cycles.div_ceil(u128::from(per_second.max(1)));
                Position::Cycle(u64::try_from(cycles).unwrap_or(u64::MAX))
            }
        }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!("expected a record (1000), a cycle (1000c) or a time (1.5ms), found \"{text}\"")
        };
        let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let whole = || number.parse().map_err(|_| expected());
        let per_second = match unit {
            "" => return Ok(Self::Record(whole()?)),
            "c" => return Ok(Self::Cycle(whole()?)),
            "s" => 1,
            "ms" => 1_000,
            "us" => 1_000_000,
            "ns" => 1_000_000_000,
            _ => return Err(expected()),
        };
        let (before, after) = number.split_once('.').unwrap_or((number, ""));
        let count: Option<u64> = format!("{before}{after}").parse().ok();
        let scale = u32::try_from(after.len())
            .ok()
            .and_then(|places| 10u64.checked_pow(places))
            .and_then(|scale| scale.checked_mul(per_second));
        count.zip(scale).map(|(count, scale)| Self::Time(count, scale)).ok_or_else(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_cycles_and_times() {
        let cycle = |text: &str| match text.parse::<Place>().unwrap().position(3_200_000_000) {
            Position::Cycle(cycle) => cycle,
            Position::Record(_) => panic!("{text} is no record"),
        };
        assert_eq!("12".parse(), Ok(Place::Record(12)));
        assert_eq!(cycle("12c"), 12);
        assert_eq!(cycle("0.1s"), 320_000_000);
        assert_eq!(cycle("1.25ms"), 4_000_000);
        assert_eq!(cycle("1us"), 3200);
        assert_eq!(cycle("1ns"), 4, "the first cycle by which it has passed");
        assert_eq!(cycle("18446744073709551615s"), u64::MAX);
        for bad in
            ["", "c", "1.5", "1.5c", "-1", "1h", "1.2.3s", ".s", "ms", "1.00000000000000000000001s"]
        {
            assert!(bad.parse::<Place>().is_err(), "{bad}");
        }
    }
}
