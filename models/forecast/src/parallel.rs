//! The same work for many items on a few threads, with the same answer on any number of them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `work(0)` to `work(count - 1)`, in order. Items are handed out one by one, because some series
/// take a hundred times longer than others.
pub fn map<T: Send>(count: usize, threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = threads.clamp(1, count.max(1));
    if threads == 1 {
        return (0..count).map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let slots: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let item = next.fetch_add(1, Ordering::Relaxed);
                    let Some(slot) = slots.get(item) else { return };
                    let done = work(item);
                    *slot.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(done);
                }
            });
        }
    });
    let taken = slots.into_iter().map(|slot| slot.into_inner().unwrap_or_else(|p| p.into_inner()));
    // The scope ends with a panic if any thread did, so every slot is full here.
    taken.flatten().collect()
}

/// `work` on equal pieces of `items`, one piece a thread, each with the place of its first item.
pub fn for_pieces<T: Send>(items: &mut [T], threads: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    let size = items.len().div_ceil(threads.max(1)).max(1);
    std::thread::scope(|scope| {
        for (piece, items) in items.chunks_mut(size).enumerate() {
            let work = &work;
            scope.spawn(move || work(piece * size, items));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_order_on_any_number_of_threads() {
        let expected: Vec<usize> = (0..1_000).map(|item| item * item).collect();
        for threads in [0, 1, 2, 7] {
            assert_eq!(map(1_000, threads, |item| item * item), expected);
        }
        assert!(map(0, 4, |item| item).is_empty());
    }

    #[test]
    fn every_piece_knows_where_it_begins() {
        for threads in [0, 1, 2, 3, 50] {
            let mut items = vec![0; 17];
            for_pieces(&mut items, threads, |first, piece| {
                piece.iter_mut().enumerate().for_each(|(i, item)| *item = first + i);
            });
            assert_eq!(items, (0..17).collect::<Vec<_>>());
        }
    }
}
