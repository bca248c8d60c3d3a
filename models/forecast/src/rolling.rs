//! Rolling origins: what a model would have said at earlier moments, without what came later.
//!
//! The model learns once from what was before the first origin and is then updated sample by
//! sample, as it would be in service.

use crate::model::{Fitted, Model, Prediction};

/// At which moments a model is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origins {
    /// Samples known at the first origin.
    pub first: usize,
    pub stride: usize,
    pub count: usize,
}

/// What was predicted at each origin.
#[derive(Debug)]
pub struct Rolled {
    pub predictions: Vec<Prediction>,
    /// The model as it stands at the end of the history, with parameters from the first origin.
    pub fitted: Box<dyn Fitted>,
}

impl Origins {
    /// At most `most` origins whose whole horizon is known, over the last third of the history or
    /// 20 horizons, the last of them one horizon before its end. None where the history is too
    /// short.
    pub fn recent(len: usize, horizon: usize, most: usize) -> Self {
        let window = (len / 3).saturating_sub(horizon).min(20 * horizon);
        if horizon == 0 || window == 0 || most == 0 {
            return Self { first: len, stride: 1, count: 0 };
        }
        let stride = window.div_ceil(most).max(1);
        let count = (window / stride).clamp(1, most);
        Self { first: len - horizon - (count - 1) * stride, stride, count }
    }

    pub fn iter(&self) -> impl Iterator<Item = usize> + use<> {
        let Self { first, stride, count } = *self;
        (0..count).map(move |turn| first + turn * stride)
    }
}

/// Asks `model` at each origin.
pub fn roll(
    model: &dyn Model,
    history: &[f64],
    seasons: &[usize],
    horizon: usize,
    origins: &Origins,
) -> Rolled {
    let mut known = origins.first.min(history.len());
    let mut fitted = model.fit(&history[..known], seasons);
    let mut predictions = Vec::with_capacity(origins.count);
    for origin in origins.iter() {
        history[known..origin].iter().for_each(|value| fitted.update(*value));
        known = origin;
        predictions.push(fitted.predict(horizon));
    }
    history[known..].iter().for_each(|value| fitted.update(*value));
    Rolled { predictions, fitted }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::last_value::LastValue;

    #[test]
    fn every_origin_has_its_whole_horizon_ahead() {
        for (len, horizon, most) in [(700, 48, 12), (100, 12, 50), (30, 5, 3), (17, 5, 3)] {
            let origins = Origins::recent(len, horizon, most);
            assert!(origins.count <= most);
            assert!(origins.iter().all(|origin| origin + horizon <= len && origin * 2 >= len));
            assert!(origins.count == 0 || origins.iter().last() == Some(len - horizon));
        }
        assert_eq!(Origins::recent(10, 12, 5).count, 0);
        assert_eq!(Origins::recent(0, 0, 5).count, 0);
    }

    #[test]
    fn nothing_is_known_before_its_time() {
        let history: Vec<f64> = (0..60).map(f64::from).collect();
        let origins = Origins { first: 40, stride: 5, count: 3 };
        let rolled = roll(&LastValue, &history, &[], 2, &origins);
        let points: Vec<f64> = rolled.predictions.iter().map(|p| p.point[0]).collect();
        assert_eq!(points, [39.0, 44.0, 49.0]);
        assert_eq!(rolled.fitted.predict(1).point, [59.0]);
    }
}
