//! A tree of questions about a VM whose leaves are hazards by span of age.
//!
//! A question is kept if it makes what happened likelier by more than its own freedom would. Every
//! leaf is drawn to the node above it, so that few lives change little.

use crate::counts::{Counts, Spans};
use crate::curve::{Curve, EDGES};

/// What trees ask about, as numbers.
pub const FEATURES: usize = 7;
pub type Row = [f32; FEATURES];

/// How far a tree grows.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    pub depth: usize,
    /// Lives that a leaf has at least.
    pub fewest: f32,
    /// Features that each question is chosen from.
    pub tried: usize,
    /// Lives that the node above counts for in a leaf.
    pub strength: f64,
}

#[derive(Clone, Debug)]
pub struct Tree {
    nodes: Vec<Node>,
}

#[derive(Clone, Debug)]
enum Node {
    Leaf(Curve),
    /// Rows whose feature is below the threshold go to the next node, others to `right`.
    Question {
        feature: usize,
        threshold: f32,
        right: usize,
    },
}

/// Thresholds that are tried for a feature.
const THRESHOLDS: usize = 15;

/// Lives and what is known of them, side by side.
#[derive(Clone, Copy, Debug)]
pub struct Lessons<'a> {
    pub rows: &'a [Row],
    pub lives: &'a [Spans],
}

impl Tree {
    /// Grows on the lessons; `draw(n)` is a number below `n`.
    pub fn grow(
        lessons: Lessons<'_>,
        usual: &[f64; EDGES],
        growth: Growth,
        draw: &mut impl FnMut(usize) -> usize,
    ) -> Self {
        let mut tree = Self { nodes: Vec::new() };
        let mut taken: Vec<u32> = (0..lessons.lives.len() as u32).collect();
        let mut growing = Growing { lessons, growth, draw, tree: &mut tree };
        growing.node(&mut taken, usual, growth.depth);
        tree
    }

    pub fn curve(&self, row: &Row) -> &Curve {
        let mut at = 0;
        loop {
            match &self.nodes[at] {
                Node::Leaf(curve) => return curve,
                Node::Question { feature, threshold, right } => {
                    at = if row[*feature] < *threshold { at + 1 } else { *right };
                }
            }
        }
    }
}

struct Growing<'a, F> {
    lessons: Lessons<'a>,
    growth: Growth,
    draw: &'a mut F,
    tree: &'a mut Tree,
}

struct Question {
    feature: usize,
    threshold: f32,
    gain: f64,
}

impl<F: FnMut(usize) -> usize> Growing<'_, F> {
    fn node(&mut self, taken: &mut [u32], usual: &[f64; EDGES], depth: usize) {
        let counts = Counts::of(taken.iter().map(|life| &self.lessons.lives[*life as usize]));
        let hazards = counts.hazards(usual, self.growth.strength);
        let question = if depth > 0 { self.question(taken, &counts) } else { None };
        let Some(Question { feature, threshold, .. }) = question else {
            self.tree.nodes.push(Node::Leaf(Curve::from_hazards(&hazards)));
            return;
        };
        let rows = self.lessons.rows;
        taken.sort_by_key(|life| rows[*life as usize][feature] >= threshold);
        let below = taken.partition_point(|life| rows[*life as usize][feature] < threshold);
        let place = self.tree.nodes.len();
        self.tree.nodes.push(Node::Question { feature, threshold, right: 0 });
        let (left, right) = taken.split_at_mut(below);
        self.node(left, &hazards, depth - 1);
        let after = self.tree.nodes.len();
        self.tree.nodes[place] = Node::Question { feature, threshold, right: after };
        self.node(right, &hazards, depth - 1);
    }

    /// The question that makes what happened likeliest, among a few features drawn for this node.
    fn question(&mut self, taken: &[u32], all: &Counts) -> Option<Question> {
        let mut features: [usize; FEATURES] = std::array::from_fn(|feature| feature);
        let tried = self.growth.tried.clamp(1, FEATURES);
        for place in 0..tried {
            features.swap(place, place + (self.draw)(FEATURES - place));
        }
        let asked =
            features[..tried].iter().filter_map(|&feature| self.best_of(feature, taken, all));
        asked.max_by(|a, b| a.gain.total_cmp(&b.gain))
    }

    fn best_of(&self, feature: usize, taken: &[u32], all: &Counts) -> Option<Question> {
        let value = |life: u32| self.lessons.rows[life as usize][feature];
        let mut values: Vec<f32> = taken.iter().map(|life| value(*life)).collect();
        values.sort_by(f32::total_cmp);
        let least = *values.first()?;
        let at = |part: usize| values[part * values.len() / (THRESHOLDS + 1)];
        let mut thresholds: Vec<f32> = (1..=THRESHOLDS).map(at).collect();
        thresholds.dedup();
        thresholds.retain(|threshold| *threshold > least);
        let mut bins = vec![Counts::NONE; thresholds.len() + 1];
        for &life in taken {
            let bin = thresholds.partition_point(|threshold| *threshold <= value(life));
            bins[bin].add(&self.lessons.lives[life as usize]);
        }
        let before = all.likelihood();
        let mut below = Counts::NONE;
        let mut best: Option<Question> = None;
        for (bin, &threshold) in bins.iter().zip(&thresholds) {
            below.add_all(bin);
            let above = all.without(&below);
            if below.lives() < self.growth.fewest || above.lives() < self.growth.fewest {
                continue;
            }
            // Every span in which both sides saw an end is a number that was free to choose.
            let freedom = below.eventful().min(above.eventful()) as f64;
            let gain = below.likelihood() + above.likelihood() - before - freedom;
            if gain > best.as_ref().map_or(0.0, |best| best.gain) {
                best = Some(Question { feature, threshold, gain });
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::{Life, Traits};

    const GROWTH: Growth = Growth { depth: 4, fewest: 10.0, tried: FEATURES, strength: 5.0 };

    fn grown(lives: &[(f32, u64)]) -> Tree {
        let rows: Vec<Row> =
            lives.iter().map(|(value, _)| [0.0, *value, 0.0, 1.0, 1.0, 1.0, 1.0]).collect();
        let spans: Vec<Spans> =
            lives.iter().map(|(_, s)| Spans::of(&Life::whole(Traits::default(), *s))).collect();
        let lessons = Lessons { rows: &rows, lives: &spans };
        Tree::grow(lessons, &[0.1; EDGES], GROWTH, &mut |_| 0)
    }

    fn median_s(tree: &Tree, value: f32) -> u64 {
        tree.curve(&[0.0, value, 0.0, 1.0, 1.0, 1.0, 1.0]).at_age(0).quantile_s(0.5)
    }

    #[test]
    fn the_feature_that_matters_is_asked_for() {
        let lives: Vec<(f32, u64)> =
            (0..200).map(|n| if n % 2 == 0 { (1.0, 120) } else { (8.0, 864_000) }).collect();
        let tree = grown(&lives);
        assert!(median_s(&tree, 0.5) < 300 && median_s(&tree, 9.0) > 300_000);
    }

    #[test]
    fn noise_is_not_learned() {
        // Lives of all lengths, whatever the feature says.
        let lives: Vec<(f32, u64)> =
            (0..400u64).map(|n| ((n * 7 % 13) as f32, 60 + n * 1_000 % 100_000)).collect();
        assert!(grown(&lives).nodes.len() <= 3);
    }

    #[test]
    fn nobody_seen_leaves_what_is_usual() {
        let tree = grown(&[]);
        assert_eq!(tree.curve(&[0.0; FEATURES]), &Curve::from_hazards(&[0.1; EDGES]));
    }
}
