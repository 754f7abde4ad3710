//! TIP unit.
