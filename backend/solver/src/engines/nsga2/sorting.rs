//! Fronts of a population: the members that nobody dominates, those that only they dominate, and
//! so on; and how alone each member is on its front.
//!
//! Members are taken in an order in which nobody dominates an earlier one, and each goes to the
//! first front where nobody dominates it. The fronts are those of the textbook, found with fewer
//! comparisons.

use super::worth::Worth;

/// Rows of `worths` by front, best front first; within a front in an order of values.
pub fn fronts<const N: usize>(worths: &[Worth<N>]) -> Vec<Vec<u32>> {
    let mut order: Vec<u32> = (0..worths.len() as u32).collect();
    order.sort_by(|&a, &b| worths[a as usize].order(&worths[b as usize]).then(a.cmp(&b)));
    let mut fronts: Vec<Vec<u32>> = Vec::new();
    for row in order {
        let worth = &worths[row as usize];
        // The latest comers are the most like it, and the likeliest to dominate it.
        let free = fronts.iter().position(|front| {
            !front.iter().rev().any(|&other| worths[other as usize].dominates(worth))
        });
        match free {
            Some(front) => fronts[front].push(row),
            None => fronts.push(vec![row]),
        }
    }
    fronts
}

/// How far the neighbours of each member of a front are, summed over the values as shares of
/// their range; infinite for a member that is the first or last by some value.
pub fn crowding<const N: usize>(worths: &[Worth<N>], front: &[u32]) -> Vec<f64> {
    let mut distance = vec![0.0; front.len()];
    let mut order: Vec<usize> = (0..front.len()).collect();
    for at in 0..N {
        let value = |place: usize| worths[front[place] as usize].values[at];
        order.sort_by(|&a, &b| value(a).total_cmp(&value(b)).then(a.cmp(&b)));
        let (Some(&first), Some(&last)) = (order.first(), order.last()) else { break };
        let range = value(last) - value(first);
        distance[first] = f64::INFINITY;
        distance[last] = f64::INFINITY;
        if range > 0.0 {
            for around in order.windows(3) {
                distance[around[1]] += (value(around[2]) - value(around[0])) / range;
            }
        }
    }
    distance
}

/// Who stays, best first, with what the tournament asks of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Survivor {
    pub row: u32,
    pub front: u32,
    pub crowding: f64,
}

/// The best `size` members: whole fronts while they fit, and of the next the most alone.
pub fn survivors<const N: usize>(worths: &[Worth<N>], size: usize) -> Vec<Survivor> {
    let mut staying = Vec::with_capacity(size);
    for (number, front) in (0..).zip(fronts(worths)) {
        let left = size - staying.len();
        if left == 0 {
            break;
        }
        let members = front.iter().zip(crowding(worths, &front));
        let survivor = |(&row, crowding): (&u32, f64)| Survivor { row, front: number, crowding };
        let mut members: Vec<Survivor> = members.map(survivor).collect();
        if members.len() > left {
            members.sort_by(|a, b| b.crowding.total_cmp(&a.crowding).then(a.row.cmp(&b.row)));
            members.truncate(left);
        }
        staying.extend(members);
    }
    staying
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;

    fn worths(values: &[[f64; 2]]) -> Vec<Worth<2>> {
        values.iter().copied().map(Worth::allowed).collect()
    }

    #[test]
    fn fronts_are_peeled_one_after_the_other() {
        let mut dice = Dice::new(5);
        for _ in 0..50 {
            let mut draw = || f64::from(dice.below(12));
            let worths: Vec<Worth<3>> = (0..60)
                .map(|_| Worth {
                    values: [draw(), draw(), draw()],
                    violation: (draw() - 8.0).max(0.0),
                })
                .collect();
            let mut left: Vec<u32> = (0..60).collect();
            for mut front in fronts(&worths) {
                let dominated = |&row: &u32| {
                    let by = |&other: &u32| worths[other as usize].dominates(&worths[row as usize]);
                    left.iter().any(by)
                };
                let expected: Vec<u32> =
                    left.iter().copied().filter(|row| !dominated(row)).collect();
                front.sort_unstable();
                assert_eq!(front, expected);
                left.retain(|row| !front.contains(row));
            }
            assert!(left.is_empty());
        }
    }

    #[test]
    fn the_ends_of_a_front_stay_and_then_the_most_alone() {
        let worths =
            worths(&[[0.0, 4.0], [1.0, 3.0], [1.2, 2.8], [3.0, 1.0], [4.0, 0.0], [9.0, 9.0]]);
        let distance = crowding(&worths, &[0, 1, 2, 3, 4]);
        assert!((distance[1] - 0.6).abs() < 1e-12);
        assert!(distance[0].is_infinite() && distance[4].is_infinite());
        let rows = |size| -> Vec<u32> {
            survivors(&worths, size).iter().map(|survivor| survivor.row).collect()
        };
        assert_eq!(rows(4), [0, 4, 3, 2]);
        assert_eq!(rows(6), [0, 1, 2, 3, 4, 5]);
        assert_eq!(survivors(&worths, 6)[5].front, 1);
    }
}
