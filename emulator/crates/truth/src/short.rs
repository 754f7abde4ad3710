//! Short JSON: what is 0 is left out.

/// Returns whether a value is 0, for `skip_serializing_if`.
pub(crate) fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// An array without the zeros at its end.
pub(crate) mod trimmed {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer, const N: usize>(
        array: &[u64; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let end = array.iter().rposition(|value| *value != 0);
        array[..end.map_or(0, |end| end + 1)].serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<[u64; N], D::Error> {
        let mut values = Vec::<u64>::deserialize(deserializer)?;
        if values.len() > N {
            let found = values.len();
            return Err(D::Error::invalid_length(found, &"an array that is not longer"));
        }
        values.resize(N, 0);
        Ok(values.try_into().unwrap_or([0; N]))
    }
}
