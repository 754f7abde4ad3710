//! Addresses and masks as text: numbers in JSON are exact only below 2^53.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(address: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("{address:#x}"))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    let digits = text.strip_prefix("0x").unwrap_or_default();
    u64::from_str_radix(digits, 16).map_err(|_| {
        D::Error::custom(format!("expected an address such as 0x80000000, found {text:?}"))
    })
}

/// Addresses that may be missing, as text or null.
pub(crate) mod optional {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Hex(#[serde(with = "super")] u64);

    pub(crate) fn serialize<S: Serializer>(
        address: &Option<u64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        address.map(Hex).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<u64>, D::Error> {
        Ok(Option::<Hex>::deserialize(deserializer)?.map(|hex| hex.0))
    }
}
