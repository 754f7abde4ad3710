//! What the guest's clock shows at reset.

use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// 2026-01-01 00:00 UTC.
const FIXED: u64 = 1_767_225_600;

/// What the guest's clock shows at reset. It goes on in simulated time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Epoch {
    /// 2026-01-01 00:00 UTC, so that runs are equal.
    #[default]
    Fixed,
    /// The host's time when the machine is built: no two runs are equal.
    Host,
    /// This Unix time, in seconds.
    At(u64),
}

impl Epoch {
    /// Unix time, in seconds.
    pub(crate) fn seconds(self) -> u64 {
        match self {
            Self::Fixed => FIXED,
            Self::At(seconds) => seconds,
            Self::Host => {
                SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
            }
        }
    }
}

impl FromStr for Epoch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "fixed" => Ok(Self::Fixed),
            "host" => Ok(Self::Host),
            _ => text
                .parse::<Timestamp>()
                .ok()
                .and_then(|time| u64::try_from(time.as_second()).ok())
                .map(Self::At)
                .ok_or_else(|| {
                    format!(
                        "expected \"fixed\", \"host\" or a time from 1970 on such as 2026-06-30T12:00:00Z, found \"{text}\""
                    )
                }),
        }
    }
}

impl std::fmt::Display for Epoch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Fixed => f.write_str("fixed"),
            Self::Host => f.write_str("host"),
            // What was read was such a time.
            Self::At(seconds) => match Timestamp::from_second(seconds as i64) {
                Ok(time) => time.fmt(f),
                Err(_) => seconds.fmt(f),
            },
        }
    }
}

impl<'de> Deserialize<'de> for Epoch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A time may be a string or TOML's own kind of value.
        let value = toml::Value::deserialize(deserializer)?;
        let text = match &value {
            toml::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        text.parse().map_err(|e| de::Error::custom(format!("clock: {e}")))
    }
}

impl Serialize for Epoch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_times() {
        assert_eq!("fixed".parse(), Ok(Epoch::Fixed));
        assert_eq!("host".parse(), Ok(Epoch::Host));
        assert_eq!("1970-01-02T00:00:01Z".parse(), Ok(Epoch::At(86_401)));
        assert_eq!("1970-01-02T02:00:01+02:00".parse(), Ok(Epoch::At(86_401)));
        assert_eq!(Epoch::At(86_401).to_string(), "1970-01-02T00:00:01Z");
        for wrong in ["", "now", "1969-12-31T23:59:59Z", "2026-06-30"] {
            let error = wrong.parse::<Epoch>().unwrap_err();
            assert!(error.contains("2026-06-30T12:00:00Z"), "{error}");
        }
        assert_eq!(
            Epoch::Fixed.seconds(),
            "2026-01-01T00:00:00Z".parse::<Epoch>().unwrap().seconds()
        );
    }

    #[test]
    fn a_spec_takes_tomls_own_times_too() {
        #[derive(Deserialize)]
        struct Spec {
            clock: Epoch,
        }
        for text in ["clock = 1970-01-02T00:00:01Z", "clock = \"1970-01-02T00:00:01Z\""] {
            assert_eq!(toml::from_str::<Spec>(text).unwrap().clock, Epoch::At(86_401));
        }
        assert!(toml::from_str::<Spec>("clock = 7").is_err());
    }
}
