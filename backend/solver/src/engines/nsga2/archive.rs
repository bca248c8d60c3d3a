//! The best trade-offs seen so far: placements that none of the others dominates.

use super::hypervolume::hypervolume;
use super::sorting::crowding;
use super::worth::Worth;

#[derive(Clone, Debug)]
pub(super) struct Archive<const N: usize> {
    worths: Vec<Worth<N>>,
    hosts: Vec<Vec<u32>>,
    /// Beyond so many they are thinned out.
    most: usize,
}

impl<const N: usize> Archive<N> {
    pub(super) fn new(most: usize) -> Self {
        Self { worths: Vec::new(), hosts: Vec::new(), most: most.max(1) }
    }

    /// Takes a placement in, unless one that is there is as good in every way.
    pub(super) fn offer(&mut self, worth: Worth<N>, hosts: &[u32]) -> bool {
        if worth.violation > 0.0 {
            return false;
        }
        let no_better = |known: &Worth<N>| known == &worth || known.dominates(&worth);
        if self.worths.iter().any(no_better) {
            return false;
        }
        let mut row = 0;
        let mut spare = None;
        while row < self.worths.len() {
            if worth.dominates(&self.worths[row]) {
                self.worths.swap_remove(row);
                spare = Some(self.hosts.swap_remove(row));
            } else {
                row += 1;
            }
        }
        let mut kept = spare.unwrap_or_default();
        kept.clear();
        kept.extend_from_slice(hosts);
        self.worths.push(worth);
        self.hosts.push(kept);
        if self.worths.len() > self.most {
            self.thin(self.most * 3 / 4);
        }
        true
    }

    /// Leaves the most alone ones.
    fn thin(&mut self, size: usize) {
        let rows: Vec<u32> = (0..self.worths.len() as u32).collect();
        let alone = crowding(&self.worths, &rows);
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by(|&a, &b| alone[b].total_cmp(&alone[a]).then(a.cmp(&b)));
        order.truncate(size);
        order.sort_unstable();
        self.worths = order.iter().map(|&row| self.worths[row]).collect();
        self.hosts = order.iter().map(|&row| std::mem::take(&mut self.hosts[row])).collect();
    }

    /// Placements, the best by the first value first.
    pub(super) fn into_placements(mut self) -> impl Iterator<Item = Vec<u32>> {
        let mut order: Vec<usize> = (0..self.worths.len()).collect();
        let first = |row: usize| self.worths[row].values[0];
        order.sort_by(|&a, &b| first(a).total_cmp(&first(b)).then(a.cmp(&b)));
        order.into_iter().map(move |row| std::mem::take(&mut self.hosts[row]))
    }

    /// At most `size` of them that together dominate most of the box below `worst`: always the one
    /// next that adds most to those chosen already.
    pub(super) fn best(self, size: usize, worst: [f64; N]) -> Vec<(Worth<N>, Vec<u32>)> {
        let points: Vec<[f64; N]> = self
            .worths
            .iter()
            .map(|worth| std::array::from_fn(|at| worth.values[at] / worst[at]))
            .collect();
        let alone = |point: &[f64; N]| hypervolume(&[*point], [1.0; N]);
        // What a point adds never grows while others are chosen, so that an old figure is a bound
        // and few have to be worked out again.
        let mut bounds: Vec<(f64, usize)> =
            points.iter().enumerate().map(|(row, point)| (alone(point), row)).collect();
        let mut chosen: Vec<usize> = Vec::new();
        while chosen.len() < size && !bounds.is_empty() {
            bounds.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            let mut best: Option<(f64, usize)> = None;
            for (place, (bound, row)) in bounds.iter_mut().enumerate() {
                let row = *row;
                if best.is_some_and(|(most, _)| most >= *bound) {
                    break;
                }
                let within =
                    |other: usize| std::array::from_fn(|at| points[other][at].max(points[row][at]));
                let covered: Vec<[f64; N]> = chosen.iter().map(|&other| within(other)).collect();
                let adds = alone(&points[row]) - hypervolume(&covered, [1.0; N]);
                *bound = adds;
                if best.is_none_or(|(most, _)| adds > most) {
                    best = Some((adds, place));
                }
            }
            let Some((_, place)) = best else { break };
            chosen.push(bounds.swap_remove(place).1);
        }
        let mut hosts = self.hosts;
        let worths = &self.worths;
        chosen.into_iter().map(|row| (worths[row], std::mem::take(&mut hosts[row]))).collect()
    }
}
