//! What tests of the whole product share.

pub mod tidy;
