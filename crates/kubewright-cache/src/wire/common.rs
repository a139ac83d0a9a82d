//! What many objects have alike, kept once.
//!
//! The labels and owners of all Pods of one template are the same, byte by byte, and with the metadata at hand for every
//! object they were a fifth of what a cached Pod takes.

use std::{collections::HashSet, sync::Arc};

use foldhash::fast::FixedState;
use parking_lot::Mutex;

/// A block of bytes that objects of one cache may share.
pub(crate) type Block = Arc<[u8]>;

/// Below this many blocks it is not worth looking which of them are still needed.
const FEW: usize = 64;

/// The blocks of one cache.
pub(crate) struct Common {
    state: Mutex<State>,
}

struct State {
    blocks: HashSet<Block, FixedState>,
    /// How many blocks there may be before those that nobody has any more are looked for.
    limit: usize,
}

impl Common {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State { blocks: HashSet::default(), limit: FEW }) }
    }

    /// The block with these bytes.
    pub(crate) fn block(&self, bytes: &[u8]) -> Block {
        let mut state = self.state.lock();
        if let Some(block) = state.blocks.get(bytes) {
            return Arc::clone(block);
        }
        if state.blocks.len() >= state.limit {
            state.sweep();
        }
        let block = Block::from(bytes);
        state.blocks.insert(Arc::clone(&block));
        block
    }
}

impl State {
    /// Forgets what only we have. Looking again once there are twice as many keeps the cost of it per block constant, and
    /// never are more blocks forgotten late than are needed.
    fn sweep(&mut self) {
        self.blocks.retain(|block| Arc::strong_count(block) > 1);
        self.limit = FEW.max(2 * self.blocks.len());
        self.blocks.shrink_to(self.limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_are_one_block() {
        let common = Common::new();
        let first = common.block(b"app=web");
        assert!(Arc::ptr_eq(&first, &common.block(b"app=web")));
        assert!(!Arc::ptr_eq(&first, &common.block(b"app=shop")));
    }

    #[test]
    fn what_nobody_has_any_more_is_forgotten() {
        let common = Common::new();
        let kept: Vec<Block> = (0..10_u32).map(|number| common.block(&number.to_le_bytes())).collect();
        for number in 10..100_000_u32 {
            common.block(&number.to_le_bytes());
        }
        assert!(common.state.lock().blocks.len() <= FEW);
        for (number, block) in (0..10_u32).zip(&kept) {
            assert!(Arc::ptr_eq(block, &common.block(&number.to_le_bytes())), "{number}");
        }
    }

    #[test]
    fn blocks_that_are_all_needed_are_all_kept() {
        let common = Common::new();
        let kept: Vec<Block> = (0..10_000_u32).map(|number| common.block(&number.to_le_bytes())).collect();
        for (number, block) in (0..10_000_u32).zip(&kept) {
            assert!(Arc::ptr_eq(block, &common.block(&number.to_le_bytes())), "{number}");
        }
    }
}
