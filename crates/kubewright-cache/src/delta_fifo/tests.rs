use futures::FutureExt;

use super::*;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Thing {
    name: &'static str,
    value: u32,
}

fn thing(name: &'static str, value: u32) -> Thing {
    Thing { name, value }
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of a key function")]
fn key(thing: &Thing) -> Result<ObjectKey, KeyError> {
    Ok(ObjectKey::cluster(thing.name))
}

fn with_store(known: &[Thing]) -> (DeltaFifo<Thing>, Store<Thing>) {
    let store = Store::new(key);
    store.replace(known.to_vec()).unwrap();
    (DeltaFifo::of(&store), store)
}

fn pop(fifo: &DeltaFifo<Thing>) -> Option<Vec<Delta<Thing>>> {
    fifo.pop(|popped| popped.deltas).now_or_never().flatten()
}

fn deleted(object: Thing, final_state_unknown: bool) -> Delta<Thing> {
    Delta::Deleted { object, final_state_unknown }
}

#[test]
fn deltas_of_a_key_come_oldest_first_and_keys_in_order_of_their_first_delta() {
    let fifo = DeltaFifo::new(key);
    fifo.add(thing("a", 1)).unwrap();
    fifo.add(thing("b", 1)).unwrap();
    fifo.update(thing("a", 2)).unwrap();
    assert_eq!(fifo.list(), [thing("a", 2), thing("b", 1)]);
    assert_eq!(pop(&fifo).unwrap(), [Delta::Added(thing("a", 1)), Delta::Updated(thing("a", 2))]);
    assert_eq!(pop(&fifo).unwrap(), [Delta::Added(thing("b", 1))]);
    assert_eq!(pop(&fifo), None);
}

#[test]
fn two_deletions_in_a_row_collapse_into_the_one_that_saw_the_final_state() {
    for (first_unknown, second_unknown, kept) in [(false, true, 1), (true, false, 2), (false, false, 2)] {
        let (fifo, _) = with_store(&[thing("a", 0)]);
        let mut state = fifo.inner.state.lock();
        state.push(ObjectKey::cluster("a"), deleted(thing("a", 1), first_unknown));
        state.push(ObjectKey::cluster("a"), deleted(thing("a", 2), second_unknown));
        drop(state);
        assert_eq!(pop(&fifo).unwrap(), [deleted(thing("a", kept), false)]);
    }
}

#[test]
fn deleting_what_nobody_knows_of_is_dropped() {
    let (fifo, _) = with_store(&[thing("known", 0)]);
    fifo.delete(thing("unknown", 1)).unwrap();
    fifo.delete(thing("known", 1)).unwrap();
    assert_eq!(pop(&fifo).unwrap(), [deleted(thing("known", 1), false)]);
    assert_eq!(pop(&fifo), None);
}

#[test]
fn a_list_replaces_what_it_has_and_buries_what_it_lacks() {
    let (fifo, _) = with_store(&[thing("a", 1), thing("b", 1)]);
    fifo.update(thing("queued", 1)).unwrap();
    fifo.replace(vec![thing("b", 2), thing("c", 2)]).unwrap();
    assert_eq!(pop(&fifo).unwrap(), [Delta::Updated(thing("queued", 1)), deleted(thing("queued", 1), true)]);
    assert_eq!(pop(&fifo).unwrap(), [Delta::Replaced(thing("b", 2))]);
    assert_eq!(pop(&fifo).unwrap(), [Delta::Replaced(thing("c", 2))]);
    assert_eq!(pop(&fifo).unwrap(), [deleted(thing("a", 1), true)]);
    assert_eq!(pop(&fifo), None);
}

#[tokio::test]
async fn an_object_in_a_consumers_hands_is_buried_too_when_a_list_lacks_it() {
    let (fifo, _) = with_store(&[]);
    fifo.add(thing("a", 1)).unwrap();
    let batch = fifo.next_batch(10).await.unwrap();
    fifo.replace(vec![]).unwrap();
    drop(batch);
    assert_eq!(pop(&fifo).unwrap(), [deleted(thing("a", 1), true)]);
}

#[test]
fn a_list_that_breaks_off_buries_nothing() {
    let (fifo, _) = with_store(&[thing("a", 1)]);
    let mut replacement = fifo.replacing();
    replacement.page(vec![thing("b", 1)]).unwrap();
    drop(replacement);
    assert_eq!(pop(&fifo).unwrap(), [Delta::Replaced(thing("b", 1))]);
    assert_eq!(pop(&fifo), None);
    assert!(!fifo.has_synced());
}

#[test]
fn the_first_list_buries_what_somebody_else_queued_meanwhile() {
    let (fifo, _) = with_store(&[]);
    let mut replacement = fifo.replacing();
    replacement.page(vec![thing("a", 1)]).unwrap();
    fifo.add(thing("b", 1)).unwrap();
    replacement.commit().unwrap();
    assert_eq!(pop(&fifo).unwrap(), [Delta::Replaced(thing("a", 1))]);
    assert_eq!(pop(&fifo).unwrap(), [Delta::Added(thing("b", 1)), deleted(thing("b", 1), true)]);
    assert_eq!(pop(&fifo), None);
}

#[test]
fn the_first_list_buries_what_one_before_it_that_broke_off_had() {
    let (fifo, store) = with_store(&[]);
    let mut broken = fifo.replacing();
    broken.page(vec![thing("a", 1), thing("b", 1)]).unwrap();
    drop(broken);
    assert_eq!(pop(&fifo).unwrap(), [Delta::Replaced(thing("a", 1))]);
    store.add(thing("a", 1)).unwrap();
    fifo.replace(vec![thing("c", 1)]).unwrap();
    assert_eq!(pop(&fifo).unwrap(), [Delta::Replaced(thing("b", 1)), deleted(thing("b", 1), true)]);
    assert_eq!(pop(&fifo).unwrap(), [Delta::Replaced(thing("c", 1))]);
    assert_eq!(pop(&fifo).unwrap(), [deleted(thing("a", 1), true)]);
}

#[test]
fn what_is_taken_out_of_a_list_and_put_in_again_is_in_it() {
    for known in [&[][..], &[thing("x", 0)]] {
        let (fifo, _) = with_store(known);
        let mut replacement = fifo.replacing();
        replacement.page(vec![thing("a", 1), thing("b", 1)]).unwrap();
        replacement.remove(thing("a", 1)).unwrap();
        replacement.remove(thing("b", 1)).unwrap();
        replacement.page(vec![thing("a", 2)]).unwrap();
        replacement.commit().unwrap();
        let a =
            [Delta::Replaced(thing("a", 1)), deleted(thing("a", 1), false), Delta::Replaced(thing("a", 2))];
        assert_eq!(pop(&fifo).unwrap(), a);
        // One that is not in the list and ends with its deletion is not buried twice.
        assert_eq!(pop(&fifo).unwrap(), [Delta::Replaced(thing("b", 1)), deleted(thing("b", 1), false)]);
        assert_eq!(pop(&fifo).is_some(), !known.is_empty());
    }
}

#[test]
fn it_has_synced_when_the_first_list_was_popped() {
    let (fifo, _) = with_store(&[]);
    assert!(!fifo.has_synced());
    let mut replacement = fifo.replacing();
    replacement.page(vec![thing("a", 1)]).unwrap();
    assert!(pop(&fifo).is_some(), "a page can be consumed before the list is complete");
    replacement.page(vec![thing("b", 1)]).unwrap();
    assert!(!fifo.has_synced());
    replacement.commit().unwrap();
    assert!(!fifo.has_synced());
    let inside = fifo.pop(|popped| (popped.is_in_initial_list, fifo.has_synced())).now_or_never().flatten();
    assert_eq!(inside, Some((true, false)), "not before the consumer is done");
    assert!(fifo.has_synced());
    fifo.add(thing("c", 1)).unwrap();
    assert_eq!(fifo.pop(|popped| popped.is_in_initial_list).now_or_never().flatten(), Some(false));
}

#[test]
fn an_empty_first_list_is_synced_at_once() {
    let (fifo, _) = with_store(&[]);
    fifo.replace(vec![]).unwrap();
    assert!(fifo.has_synced());
}

#[test]
fn resync_queues_every_known_object_that_has_nothing_queued() {
    let (fifo, _) = with_store(&[thing("a", 1), thing("b", 1)]);
    fifo.update(thing("a", 2)).unwrap();
    fifo.resync();
    assert_eq!(pop(&fifo).unwrap(), [Delta::Updated(thing("a", 2))]);
    assert_eq!(pop(&fifo).unwrap(), [Delta::Sync(thing("b", 1))]);
    assert_eq!(pop(&fifo), None);
}

#[test]
fn a_panic_in_a_consumer_leaves_the_queue_usable() {
    let fifo = DeltaFifo::new(key);
    fifo.replace(vec![thing("a", 1)]).unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        fifo.pop(|_| panic!("boom")).now_or_never()
    }));
    assert!(panicked.is_err());
    assert!(fifo.has_synced());
    fifo.add(thing("b", 1)).unwrap();
    assert!(pop(&fifo).is_some());
}

#[tokio::test]
async fn a_closed_queue_gives_what_is_left_and_then_nothing() {
    let fifo = DeltaFifo::new(key);
    let waiting = tokio::spawn({
        let fifo = fifo.clone();
        async move { fifo.pop(|_| ()).await }
    });
    tokio::task::yield_now().await;
    fifo.close();
    assert_eq!(waiting.await.unwrap(), None);
    fifo.add(thing("a", 1)).unwrap();
    assert!(fifo.pop(|_| ()).await.is_some());
    assert!(fifo.pop(|_| ()).await.is_none());
}

#[tokio::test]
async fn a_consumer_learns_how_far_the_reflector_has_come_once_the_queue_is_empty() {
    let fifo = DeltaFifo::new(key);
    fifo.add(thing("a", 1)).unwrap();
    fifo.add(thing("b", 1)).unwrap();
    fifo.observed("7");
    assert_eq!(fifo.next_batch(1).await.unwrap().up_to, None);
    assert_eq!(fifo.next_batch(1).await.unwrap().up_to.as_deref(), Some("7"));
    fifo.observed("9");
    let batch = fifo.next_batch(1).await.unwrap();
    assert!(batch.items.is_empty());
    assert_eq!(batch.up_to.as_deref(), Some("9"));
}
