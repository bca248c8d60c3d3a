//! Small and middling systems of linear equations.

/// Solves `a x = b` for a symmetric positive matrix by Cholesky's method; `a` is overwritten.
/// `None` where the matrix is not positive.
pub fn solve_positive(a: &mut [f64], b: &[f64]) -> Option<Vec<f64>> {
    let mut x = b.to_vec();
    factor(a, b.len())?;
    solve_factored(a, &mut x);
    Some(x)
}

/// Replaces the lower triangle of `a` by its Cholesky factor.
pub fn factor(a: &mut [f64], n: usize) -> Option<()> {
    for i in 0..n {
        let (above, row) = a.split_at_mut(i * n);
        for j in 0..i {
            let other = &above[j * n..j * n + j];
            let sum: f64 = row[..j].iter().zip(other).map(|(a, b)| a * b).sum();
            row[j] = (row[j] - sum) / above[j * n + j];
        }
        let sum: f64 = row[..i].iter().map(|a| a * a).sum();
        let left = row[i] - sum;
        if left.is_nan() || left <= 0.0 {
            return None;
        }
        row[i] = left.sqrt();
    }
    Some(())
}

/// Solves with a factor from `factor`, in place.
pub fn solve_factored(factor: &[f64], x: &mut [f64]) {
    let n = x.len();
    for i in 0..n {
        let sum: f64 = factor[i * n..i * n + i].iter().zip(&*x).map(|(a, b)| a * b).sum();
        x[i] = (x[i] - sum) / factor[i * n + i];
    }
    for i in (0..n).rev() {
        let value = x[i] / factor[i * n + i];
        x[i] = value;
        for j in 0..i {
            x[j] -= factor[i * n + j] * value;
        }
    }
}

/// Solves `a x = b` by elimination with row exchanges; both are overwritten. `None` where the
/// matrix is singular.
pub fn solve_any(a: &mut [f64], b: &mut [f64]) -> Option<()> {
    let n = b.len();
    for pivot in 0..n {
        let best = (pivot..n)
            .max_by(|&i, &j| a[i * n + pivot].abs().total_cmp(&a[j * n + pivot].abs()))?;
        if a[best * n + pivot].abs() < 1e-300 {
            return None;
        }
        if best != pivot {
            for column in 0..n {
                a.swap(pivot * n + column, best * n + column);
            }
            b.swap(pivot, best);
        }
        let (done, left) = a.split_at_mut((pivot + 1) * n);
        let top = &done[pivot * n..];
        for (offset, row) in left.chunks_exact_mut(n).enumerate() {
            let factor = row[pivot] / top[pivot];
            if factor != 0.0 {
                for column in pivot..n {
                    row[column] -= factor * top[column];
                }
                b[pivot + 1 + offset] -= factor * b[pivot];
            }
        }
    }
    for i in (0..n).rev() {
        let sum: f64 = (i + 1..n).map(|j| a[i * n + j] * b[j]).sum();
        b[i] = (b[i] - sum) / a[i * n + i];
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_solved() {
        let a = [4.0, 1.0, 0.5, 1.0, 3.0, -1.0, 0.5, -1.0, 5.0];
        let truth = [1.0, -2.0, 3.0];
        let b: Vec<f64> = (0..3).map(|i| (0..3).map(|j| a[i * 3 + j] * truth[j]).sum()).collect();
        let found = solve_positive(&mut a.clone(), &b).expect("positive");
        let mut other = b.clone();
        solve_any(&mut a.clone(), &mut other).expect("regular");
        for i in 0..3 {
            assert!((found[i] - truth[i]).abs() < 1e-12 && (other[i] - truth[i]).abs() < 1e-12);
        }
    }

    #[test]
    fn what_has_no_solution_is_said_to_have_none() {
        assert!(solve_positive(&mut [1.0, 2.0, 2.0, 1.0], &[1.0, 1.0]).is_none());
        assert!(solve_any(&mut [1.0, 2.0, 2.0, 4.0], &mut [1.0, 1.0]).is_none());
        let mut swapped = [1.0, 2.0];
        assert!(solve_any(&mut [0.0, 1.0, 1.0, 0.0], &mut swapped).is_some());
        assert_eq!(swapped, [2.0, 1.0]);
    }
}
