//! Series in, quantiles out; knows no VM and no host.
