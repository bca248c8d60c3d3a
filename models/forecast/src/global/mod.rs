//! Models that learn from all series together and then know what to say about each of them.

pub mod gru;
pub mod layer;
pub mod lessons;
pub mod lstm;
pub mod net;
pub mod network;
pub mod quantile;
pub mod ridge;
pub mod sight;
pub mod state;
pub mod window;
