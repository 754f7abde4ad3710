//! Cycles between events of the back end that no parameter of a core changes, for who reads what a core told.

use crate::{execute, lsu, window};

/// Cycles from the issue of a load, if its address is translated at once, to its search of the store queue.
pub const LOAD_SEARCH: u64 = lsu::S0 + lsu::SEARCH;
/// Cycles from the arrival of a store's data in the store queue to the first cycle in which the store can commit.
pub const STORE_DATA: u64 = lsu::store::STORE_DATA_DONE;
/// Cycles from the issue of a branch to the dispatch that can have its tag.
pub const BRANCH_TAG: u64 = execute::TAG_FREE;
/// Cycles from a commit to the dispatch that can have the register that the commit freed.
pub const REGISTER: u64 = window::FREE_LIST;
