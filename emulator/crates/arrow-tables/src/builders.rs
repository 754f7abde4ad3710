//! Columns while they grow.

use std::mem::take;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Int32Array, Int64Array, ListArray, StringArray,
    UInt8Array, UInt32Array, UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Field};
use rustc_hash::FxHashMap;

/// A column of texts of which there are few different ones, while it grows.
#[derive(Default)]
pub(crate) struct DictionaryBuilder {
    keys: Vec<i32>,
    texts: Vec<String>,
    /// Keys of the texts that [`Self::define`] added.
    known: FxHashMap<String, usize>,
}

impl DictionaryBuilder {
    /// Returns a column whose texts are known beforehand; keys are pushed by [`Self::push`].
    pub(crate) fn of(texts: impl IntoIterator<Item = String>) -> Self {
        Self { keys: Vec::new(), texts: texts.into_iter().collect(), known: FxHashMap::default() }
    }

    /// Adds a row with the text of key `key`.
    pub(crate) fn push(&mut self, key: usize) {
        self.keys.push(key as i32);
    }

    /// Returns the key of `text`, which is added if it is new: pandas wants each text once in a dictionary.
    pub(crate) fn define(&mut self, text: String) -> usize {
        let texts = &mut self.texts;
        *self.known.entry(text).or_insert_with_key(|text| {
            texts.push(text.clone());
            texts.len() - 1
        })
    }

    /// Returns the rows so far as an array and forgets them; the texts stay.
    pub(crate) fn rows(&mut self) -> Result<ArrayRef, ArrowError> {
        let texts = StringArray::from_iter_values(&self.texts);
        let keys = Int32Array::from(take(&mut self.keys));
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(texts))?))
    }

    /// Returns the rows so far as an array and forgets them and the texts.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let rows = self.rows()?;
        self.texts.clear();
        self.known.clear();
        Ok(rows)
    }
}

/// A [`DictionaryBuilder`] whose rows are given by numbers; the text of a number is made when it is first met.
#[derive(Default)]
pub(crate) struct NumberedDictionary {
    names: DictionaryBuilder,
    keys: FxHashMap<u32, usize>,
}

impl NumberedDictionary {
    /// Adds a row with the text of number `id`.
    pub(crate) fn push(&mut self, id: u32, text: impl FnOnce() -> String) {
        let key = *self.keys.entry(id).or_insert_with(|| self.names.define(text()));
        self.names.push(key);
    }

    /// Returns the rows so far as an array; nothing is left.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        self.keys.clear();
        self.names.finish()
    }
}

/// A column of lists of numbers, while it grows.
pub(crate) struct ListBuilder {
    offsets: Vec<i32>,
    values: Vec<u32>,
}

impl Default for ListBuilder {
    fn default() -> Self {
        Self { offsets: vec![0], values: Vec::new() }
    }
}

impl ListBuilder {
    /// Adds a row.
    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = u32>) {
        self.values.extend(row);
        self.offsets.push(self.values.len() as i32);
    }

    /// Returns the rows so far as an array; nothing is left.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let Self { offsets, values } = take(self);
        let item = Arc::new(Field::new("item", DataType::UInt32, false));
        let offsets = OffsetBuffer::new(offsets.into());
        let values = Arc::new(UInt32Array::from(values));
        Ok(Arc::new(ListArray::try_new(item, offsets, values, None)?))
    }
}

/// Returns a cycle or count as a signed number, as tables have it; no real one exceeds the signed range.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Values of a column that can be taken as an array, which leaves the column empty.
pub(crate) trait TakeArray {
    /// Returns the values as an Arrow array and empties the column.
    fn rows(&mut self) -> ArrayRef;
}

macro_rules! rows {
    ($($values:ty => $array:ty;)*) => {
        $(impl TakeArray for $values {
            fn rows(&mut self) -> ArrayRef {
                Arc::new(<$array>::from(take(self)))
            }
        })*
    };
}
rows! {
    Vec<u64> => UInt64Array;
    Vec<Option<u64>> => UInt64Array;
    Vec<i64> => Int64Array;
    Vec<Option<i64>> => Int64Array;
    Vec<u32> => UInt32Array;
    Vec<Option<u32>> => UInt32Array;
    Vec<u8> => UInt8Array;
    Vec<bool> => BooleanArray;
}
