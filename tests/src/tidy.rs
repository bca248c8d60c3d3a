//! Checks on the source tree itself: who depends on whom, what lies where, what files contain.
//!
//! Every check is a function from a `Tree` in memory to complaints, so that its tests can show
//! it a tree that breaks the rule. `tests/tests/tidy.rs` shows them the real one.

mod code_map;
mod edges;
mod layout;
mod text;
mod tree;

pub use code_map::code_map_names_every_crate;
pub use edges::dependencies_point_one_way;
pub use layout::{file_names_say_something, files_are_short, top_level_is_as_drawn};
pub use text::{nothing_is_left_undone, nothing_names_a_machine, rust_files_say_what_they_do};
pub use tree::Tree;

/// What a check found, one sentence each that starts with the path.
pub type Complaints = Vec<String>;

pub type Check = fn(&Tree) -> Complaints;

/// Every check by name.
pub const CHECKS: [(&str, Check); 8] = [
    ("code_map_names_every_crate", code_map_names_every_crate),
    ("dependencies_point_one_way", dependencies_point_one_way),
    ("file_names_say_something", file_names_say_something),
    ("files_are_short", files_are_short),
    ("nothing_is_left_undone", nothing_is_left_undone),
    ("nothing_names_a_machine", nothing_names_a_machine),
    ("rust_files_say_what_they_do", rust_files_say_what_they_do),
    ("top_level_is_as_drawn", top_level_is_as_drawn),
];
