//! The share that is still alive at each age, and what it says about what is left.
//!
//! Ages go up by factors: the difference between one minute and two says as much as that between
//! one month and two.

/// Ages at which a curve is known.
pub const EDGES: usize = 31;
/// Spans of age: before the first edge, between edges, and after the last one.
pub const SPANS: usize = EDGES + 1;

/// From a minute to ten months, each about 1.55 times the one before.
pub const EDGE_S: [u64; EDGES] = edges();

const fn edges() -> [u64; EDGES] {
    let mut edges = [60; EDGES];
    let mut at = 1;
    while at < EDGES {
        edges[at] = edges[at - 1] * 31 / 20;
        at += 1;
    }
    edges
}

/// The span that an age lies in.
pub fn span_of(age_s: u64) -> usize {
    EDGE_S.partition_point(|edge| *edge <= age_s)
}

/// The share alive at each edge. Within a span the hazard is even; after the last edge half are
/// alive at twice the age.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    alive: [f64; EDGES],
}

/// How a life is called by length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Half end within an hour.
    Short,
    /// Half end within a day.
    Medium,
    Long,
    /// Too little was seen to say.
    Unknown,
}

/// What is left of a life, at an age.
#[derive(Clone, Copy, Debug)]
pub struct Remaining<'a> {
    curve: &'a Curve,
    age_s: u64,
}

/// No share is smaller: there is always somebody who lives on.
const LEAST: f64 = 1e-12;

impl Curve {
    /// A curve from the share of those alive that ends in each span but the last.
    pub fn from_hazards(hazards: &[f64; EDGES]) -> Self {
        let mut alive = 1.0;
        Self {
            alive: hazards.map(|hazard| {
                alive *= 1.0 - hazard.clamp(0.0, 1.0);
                f64::max(alive, LEAST)
            }),
        }
    }

    /// A curve from the share alive at an age.
    pub fn from_alive(alive: impl Fn(u64) -> f64) -> Self {
        let mut least = 1.0;
        Self {
            alive: EDGE_S.map(|edge| {
                least = f64::min(least, alive(edge)).max(LEAST);
                least
            }),
        }
    }

    /// The mean of several curves.
    pub fn mean(curves: impl Iterator<Item = Curve>) -> Option<Self> {
        let (mut sum, mut count) = ([0.0; EDGES], 0.0);
        for curve in curves {
            sum.iter_mut().zip(curve.alive).for_each(|(sum, alive)| *sum += alive);
            count += 1.0;
        }
        (count > 0.0).then(|| Self { alive: sum.map(|sum| sum / count) })
    }

    /// The share alive at an age.
    pub fn alive(&self, age_s: u64) -> f64 {
        let span = span_of(age_s);
        let (from_s, from) =
            span.checked_sub(1).map_or((0, 1.0), |edge| (EDGE_S[edge], self.alive[edge]));
        if span == EDGES {
            return (from * from_s as f64 / age_s as f64).max(LEAST);
        }
        let way = (age_s - from_s) as f64 / (EDGE_S[span] - from_s) as f64;
        from * (self.alive[span] / from).powf(way)
    }

    /// What is left for one that has reached an age.
    pub fn at_age(&self, age_s: u64) -> Remaining<'_> {
        Remaining { curve: self, age_s }
    }
}

impl Remaining<'_> {
    /// The chance of living for so long from now.
    pub fn survives(&self, seconds: u64) -> f64 {
        let then = self.curve.alive(self.age_s.saturating_add(seconds));
        (then / self.curve.alive(self.age_s)).min(1.0)
    }

    /// The time from now by which it has ended with probability `level`, up to a hundred years.
    pub fn quantile_s(&self, level: f64) -> u64 {
        let (mut low, mut high) = (0u64, 100 * 365 * 86_400);
        while low < high {
            let middle = low.midpoint(high);
            if 1.0 - self.survives(middle) >= level {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    pub fn class(&self) -> Class {
        match self.quantile_s(0.5) {
            0..=3_600 => Class::Short,
            3_601..=86_400 => Class::Medium,
            _ => Class::Long,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of those alive end within every hour.
    fn hourly() -> Curve {
        Curve::from_alive(|age_s| 0.5f64.powf(age_s as f64 / 3_600.0))
    }

    #[test]
    fn edges_climb_from_a_minute_to_months() {
        assert!(EDGE_S.windows(2).all(|pair| pair[0] < pair[1]));
        let last_days = EDGE_S[EDGES - 1] / 86_400;
        assert!((300..400).contains(&last_days), "{last_days}");
        assert_eq!((span_of(0), span_of(59), span_of(60)), (0, 0, 1));
        assert_eq!(span_of(u64::MAX), EDGES);
    }

    #[test]
    fn quantiles_are_where_the_share_is() {
        let curve = hourly();
        let middle = curve.at_age(0).quantile_s(0.5);
        assert!((3_550..3_650).contains(&middle), "{middle}");
        assert_eq!(curve.at_age(0).class(), Class::Short);
        assert!((curve.at_age(0).survives(7_200) - 0.25).abs() < 1e-3);
    }

    #[test]
    fn what_is_left_depends_on_the_age() {
        // Half end in a minute; those who do not live for months.
        let curve = Curve::from_alive(|age_s| if age_s < 60 { 1.0 } else { 0.5 });
        assert_eq!(curve.at_age(0).class(), Class::Short);
        assert_eq!(curve.at_age(3_600).class(), Class::Long);
        let young = hourly().at_age(0).quantile_s(0.5);
        let old = hourly().at_age(5 * 3_600).quantile_s(0.5);
        assert!(young.abs_diff(old) < 60, "{young} {old}");
    }

    #[test]
    fn far_ages_have_answers() {
        let curve = hourly();
        assert!(curve.at_age(u64::MAX).survives(u64::MAX) > 0.0);
        assert!(curve.at_age(u64::MAX).quantile_s(1.0) > 0);
        assert_eq!(curve.at_age(0).quantile_s(0.0), 0);
        let certain = Curve::from_hazards(&[1.0; EDGES]);
        assert!(certain.at_age(0).survives(100) < 1e-6 && certain.alive(1 << 40) > 0.0);
    }

    #[test]
    fn the_mean_of_curves_lies_between_them() {
        let (fast, slow) = (hourly(), Curve::from_hazards(&[0.0; EDGES]));
        let mean = Curve::mean([fast.clone(), slow].into_iter()).expect("two curves");
        let expected = (1.0 + fast.alive(EDGE_S[9])) / 2.0;
        assert!((mean.alive(EDGE_S[9]) - expected).abs() < 1e-12);
        assert_eq!(Curve::mean(std::iter::empty()), None);
    }
}
