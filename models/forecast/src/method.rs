//! The names under which models are asked for.

use crate::arima::Arima;
use crate::drift::Drift;
use crate::ets::{DampedHolt, Ets, Simple};
use crate::last_value::LastValue;
use crate::model::Model;
use crate::mstl::Mstl;
use crate::seasonal_naive::SeasonalNaive;
use crate::theta::{DynamicTheta, Theta};
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Last,
    SeasonalNaive,
    Drift,
    Ses,
    Holt,
    Ets,
    Theta,
    Dot,
    Mstl,
    Arima,
    /// One linear regression for all series.
    Ridge,
    /// One network on summaries of the recent past for all series.
    Net,
    /// One recurrent network for all series.
    Gru,
    /// The same with a memory cell.
    Lstm,
    /// Several of these, weighted by what they got right lately.
    Auto,
}

impl Method {
    pub const ALL: [Method; 15] = [
        Method::Auto,
        Method::Arima,
        Method::Ets,
        Method::Theta,
        Method::Dot,
        Method::Mstl,
        Method::Ridge,
        Method::Net,
        Method::Gru,
        Method::Lstm,
        Method::Ses,
        Method::Holt,
        Method::Drift,
        Method::SeasonalNaive,
        Method::Last,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Method::Last => "last",
            Method::SeasonalNaive => "seasonal-naive",
            Method::Drift => "drift",
            Method::Ses => "ses",
            Method::Holt => "holt",
            Method::Ets => "ets",
            Method::Theta => "theta",
            Method::Dot => "dot",
            Method::Mstl => "mstl",
            Method::Arima => "arima",
            Method::Ridge => "ridge",
            Method::Net => "net",
            Method::Gru => "gru",
            Method::Lstm => "lstm",
            Method::Auto => "auto",
        }
    }

    /// The model, where it needs nothing but the series itself.
    pub fn alone(self) -> Option<Box<dyn Model>> {
        Some(match self {
            Method::Last => Box::new(LastValue),
            Method::SeasonalNaive => Box::new(SeasonalNaive),
            Method::Drift => Box::new(Drift),
            Method::Ses => Box::new(Simple),
            Method::Holt => Box::new(DampedHolt),
            Method::Ets => Box::new(Ets::default()),
            Method::Theta => Box::new(Theta),
            Method::Dot => Box::new(DynamicTheta),
            Method::Mstl => Box::new(Mstl),
            Method::Arima => Box::new(Arima),
            Method::Ridge | Method::Net | Method::Gru | Method::Lstm | Method::Auto => return None,
        })
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Method::ALL.into_iter().find(|method| method.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Method::ALL.iter().map(|method| method.name()).collect();
            format!("model {text:?} is not known; take one of {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back() {
        for method in Method::ALL {
            assert_eq!(method.to_string().parse(), Ok(method));
            if let Some(model) = method.alone() {
                assert_eq!(model.name(), method.name());
            }
        }
        let error = "arma".parse::<Method>().expect_err("not a name");
        assert!(error.contains("\"arma\"") && error.contains("arima"), "{error}");
    }
}
