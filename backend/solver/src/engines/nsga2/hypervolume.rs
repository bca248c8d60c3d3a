//! Hypervolume: how much of the box below a reference point the points of a front dominate.
//!
//! Exact: slices along the last value; for two values the area below a staircase that grows point
//! by point. Meant for two to four values, beyond that it takes long.

/// The volume of points; those that do not lie below the reference count nothing.
pub fn hypervolume<const N: usize>(points: &[[f64; N]], reference: [f64; N]) -> f64 {
    let below = |point: &&[f64; N]| point.iter().zip(&reference).all(|(value, end)| value < end);
    volume(points.iter().filter(below).map(|point| &point[..]).collect(), &reference)
}

fn volume(mut points: Vec<&[f64]>, reference: &[f64]) -> f64 {
    let Some((&end, rest)) = reference.split_last() else { return 0.0 };
    let last = rest.len();
    points.sort_by(|a, b| a[last].total_cmp(&b[last]));
    let next = |row: usize| points.get(row + 1).map_or(end, |next: &&[f64]| next[last]);
    let mut sum = 0.0;
    if let [x, y] = *rest {
        let mut stairs = Stairs::new([x, y]);
        for (row, point) in points.iter().enumerate() {
            stairs.add([point[0], point[1]]);
            sum += stairs.area * (next(row) - point[last]);
        }
        return sum;
    }
    if last == 0 {
        return points.first().map_or(0.0, |point| end - point[0]);
    }
    for (row, point) in points.iter().enumerate() {
        let height = next(row) - point[last];
        if height > 0.0 {
            sum += volume(points[..=row].to_vec(), rest) * height;
        }
    }
    sum
}

/// The area for points of two values.
pub fn area(points: &[[f64; 2]], reference: [f64; 2]) -> f64 {
    let mut stairs = Stairs::new(reference);
    for point in points.iter().filter(|p| p[0] < reference[0] && p[1] < reference[1]) {
        stairs.add(*point);
    }
    stairs.area
}

/// Points that none dominates, from left to right and so from top to bottom.
struct Stairs {
    reference: [f64; 2],
    steps: Vec<[f64; 2]>,
    area: f64,
}

impl Stairs {
    fn new(reference: [f64; 2]) -> Self {
        Self { reference, steps: Vec::new(), area: 0.0 }
    }

    fn add(&mut self, [x, y]: [f64; 2]) {
        let first = self.steps.partition_point(|step| step[0] < x);
        // What is above the new point: up to the step on its left, or up to the reference.
        let mut top = if first > 0 { self.steps[first - 1][1] } else { self.reference[1] };
        if top <= y || self.steps.get(first).is_some_and(|step| step[0] == x && step[1] <= y) {
            return;
        }
        let covered = self.steps[first..].iter().take_while(|step| step[1] >= y).count();
        let mut left = x;
        for step in &self.steps[first..first + covered] {
            self.area += (step[0] - left) * (top - y);
            (left, top) = (step[0], step[1]);
        }
        let right = self.steps.get(first + covered).map_or(self.reference[0], |step| step[0]);
        self.area += (right - left) * (top - y);
        self.steps.splice(first..first + covered, [[x, y]]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;

    #[test]
    fn boxes_are_counted_once() {
        assert_eq!(area(&[[1.0, 2.0], [2.0, 1.0], [2.5, 2.5]], [3.0, 3.0]), 3.0);
        assert_eq!(area(&[[1.0, 1.0], [1.0, 1.0], [1.0, 2.0]], [2.0, 3.0]), 2.0);
        let points = [[0.0, 0.0, 1.0], [1.0, 1.0, 0.0], [5.0, 0.0, 0.0]];
        assert_eq!(hypervolume(&points, [2.0, 2.0, 2.0]), 4.0 + 1.0);
        assert_eq!(hypervolume::<3>(&[], [1.0; 3]), 0.0);
        let four = [[0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0]];
        assert_eq!(hypervolume(&four, [2.0; 4]), 8.0 + 1.0);
        assert_eq!(hypervolume(&[[1.0, 2.0], [2.0, 1.0]], [3.0, 3.0]), 3.0);
    }

    #[test]
    fn volumes_are_the_share_of_cells_that_are_dominated() {
        let mut dice = Dice::new(3);
        for _ in 0..30 {
            let points: Vec<[f64; 3]> =
                (0..12).map(|_| std::array::from_fn(|_| f64::from(dice.below(8)))).collect();
            let mut cells = 0;
            for cell in 0..512u32 {
                let at = [cell / 64, cell / 8 % 8, cell % 8].map(f64::from);
                let covers = |p: &[f64; 3]| p.iter().zip(&at).all(|(value, at)| value <= at);
                cells += usize::from(points.iter().any(covers));
            }
            assert!((hypervolume(&points, [8.0; 3]) - cells as f64).abs() < 1e-9);
        }
    }
}
