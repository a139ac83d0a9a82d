//! Interning of labels and owners.
//!
//! The labels and owners of all Pods of one template are equal. Stored per object they were a fifth of a cached Pod.

use std::{collections::HashSet, sync::Arc};

use foldhash::fast::FixedState;
use parking_lot::Mutex;

/// Interned bytes.
pub(crate) type Block = Arc<[u8]>;

/// Number of blocks below which unused ones are not removed.
const SWEEP_FROM: usize = 64;

/// Interner of one cache.
pub(crate) struct Common {
    state: Mutex<State>,
}

struct State {
    blocks: HashSet<Block, FixedState>,
    /// Number of blocks at which unused ones are removed.
    limit: usize,
}

impl Common {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State { blocks: HashSet::default(), limit: SWEEP_FROM }) }
    }

    /// Returns the block with these bytes.
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
    /// Removes blocks that no object holds. The next sweep is at twice the number of blocks, so the cost per block is constant and
    /// at most half of the blocks are unused.
    fn sweep(&mut self) {
        self.blocks.retain(|block| Arc::strong_count(block) > 1);
        self.limit = SWEEP_FROM.max(2 * self.blocks.len());
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
    fn unused_blocks_are_removed() {
        let common = Common::new();
        let kept: Vec<Block> = (0..10_u32).map(|number| common.block(&number.to_le_bytes())).collect();
        for number in 10..100_000_u32 {
            common.block(&number.to_le_bytes());
        }
        assert!(common.state.lock().blocks.len() <= SWEEP_FROM);
        for (number, block) in (0..10_u32).zip(&kept) {
            assert!(Arc::ptr_eq(block, &common.block(&number.to_le_bytes())), "{number}");
        }
    }

    #[test]
    fn used_blocks_are_kept() {
        let common = Common::new();
        let kept: Vec<Block> = (0..10_000_u32).map(|number| common.block(&number.to_le_bytes())).collect();
        for (number, block) in (0..10_000_u32).zip(&kept) {
            assert!(Arc::ptr_eq(block, &common.block(&number.to_le_bytes())), "{number}");
        }
    }
}
