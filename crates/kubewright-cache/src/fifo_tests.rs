use futures::{FutureExt, future::join_all};
use proptest::prelude::*;

use super::*;

type Item = (&'static str, u32);

fn fifo() -> Fifo<Item> {
    Fifo::new(|item: &Item| item.0.parse())
}

/// What can be popped without waiting.
fn drain(fifo: &Fifo<Item>) -> Vec<Item> {
    std::iter::from_fn(|| fifo.pop().now_or_never().flatten()).collect()
}

#[test]
fn objects_come_out_in_the_order_in_which_they_came_in() {
    let fifo = fifo();
    for item in [("c", 1), ("a", 2), ("b", 3)] {
        fifo.add(item).unwrap();
    }
    assert_eq!(fifo.list(), [("c", 1), ("a", 2), ("b", 3)]);
    assert_eq!(drain(&fifo), [("c", 1), ("a", 2), ("b", 3)]);
    assert!(fifo.is_empty());
}

#[test]
fn only_the_latest_state_of_an_object_is_seen_in_its_old_place() {
    let fifo = fifo();
    fifo.add(("a", 1)).unwrap();
    fifo.add(("b", 1)).unwrap();
    fifo.update(("a", 2)).unwrap();
    assert_eq!((fifo.len(), fifo.get_by_key(&ObjectKey::cluster("a"))), (2, Some(("a", 2))));
    assert_eq!(drain(&fifo), [("a", 2), ("b", 1)]);
    fifo.add(("a", 3)).unwrap();
    assert_eq!(drain(&fifo), [("a", 3)]);
}

#[test]
fn a_deleted_object_vanishes_and_comes_back_at_the_end() {
    let fifo = fifo();
    for item in [("a", 1), ("b", 1), ("c", 1)] {
        fifo.add(item).unwrap();
    }
    assert_eq!(fifo.delete(&("a", 9)).unwrap(), Some(("a", 1)));
    assert_eq!(fifo.delete(&("a", 9)).unwrap(), None);
    assert_eq!(fifo.get_by_key(&ObjectKey::cluster("a")), None);
    fifo.add(("a", 2)).unwrap();
    assert_eq!(drain(&fifo), [("b", 1), ("c", 1), ("a", 2)]);
}

#[test]
fn adding_what_is_present_changes_nothing() {
    let fifo = fifo();
    fifo.add(("a", 2)).unwrap();
    fifo.add_if_not_present(("a", 1)).unwrap();
    fifo.add_if_not_present(("b", 1)).unwrap();
    assert_eq!(drain(&fifo), [("a", 2), ("b", 1)]);
}

#[test]
fn replace_takes_the_place_of_everything() {
    let fifo = fifo();
    fifo.add(("a", 1)).unwrap();
    fifo.add(("b", 1)).unwrap();
    fifo.replace([("c", 1), ("b", 2), ("c", 3)]).unwrap();
    fifo.resync();
    assert_eq!(drain(&fifo), [("c", 3), ("b", 2)]);
}

#[test]
fn an_object_without_a_key_is_refused_and_changes_nothing() {
    let fifo = fifo();
    fifo.add(("a", 1)).unwrap();
    assert!(fifo.add(("", 1)).is_err());
    assert!(fifo.add_if_not_present(("a/b/c", 1)).is_err());
    assert!(fifo.delete(&("", 1)).is_err());
    assert!(fifo.replace([("b", 1), ("", 1)]).is_err());
    assert_eq!(drain(&fifo), [("a", 1)]);
}

#[test]
fn the_initial_list_is_in_sync_when_it_is_worked_off() {
    let pop = |fifo: &Fifo<Item>| fifo.pop().now_or_never().flatten();
    let untouched = fifo();
    assert!(!untouched.has_synced());

    let empty = fifo();
    empty.replace([]).unwrap();
    assert!(empty.has_synced(), "an empty initial list is worked off at once");

    for begin in [Fifo::add, Fifo::update, Fifo::add_if_not_present] {
        let fifo = fifo();
        begin(&fifo, ("a", 1)).unwrap();
        assert!(fifo.has_synced(), "a queue that begins otherwise has no initial list");
        fifo.replace([("b", 1)]).unwrap();
        assert!(fifo.has_synced());
    }
    let deleted = fifo();
    deleted.delete(&("a", 1)).unwrap();
    assert!(deleted.has_synced());

    let fifo = fifo();
    fifo.replace([("a", 1), ("b", 1)]).unwrap();
    fifo.add(("z", 1)).unwrap();
    assert!(!fifo.has_synced());
    pop(&fifo);
    assert!(!fifo.has_synced());
    pop(&fifo);
    assert!(fifo.has_synced() && fifo.len() == 1);
}

#[test]
fn what_is_deleted_or_replaced_away_is_not_waited_for() {
    let fifo = fifo();
    fifo.replace([("a", 1), ("b", 1), ("c", 1)]).unwrap();
    fifo.delete(&("a", 1)).unwrap();
    fifo.replace([("b", 2), ("new", 1)]).unwrap();
    assert!(!fifo.has_synced(), "b is still to be seen");
    assert_eq!(fifo.pop().now_or_never().flatten(), Some(("b", 2)));
    assert!(fifo.has_synced());
}

#[tokio::test]
async fn the_process_function_knows_the_initial_list_and_can_put_back() {
    let fifo = fifo();
    fifo.replace([("a", 1)]).unwrap();
    let seen = fifo
        .pop_process(|item, initial| {
            assert!(!fifo.has_synced(), "an object counts when it is processed");
            fifo.add(("b", 1)).unwrap();
            Popped::Requeue((*item, initial))
        })
        .await;
    assert_eq!(seen, Some((("a", 1), true)));
    assert!(fifo.has_synced());
    let later = fifo.pop_process(|item, initial| Popped::Done((*item, initial))).await;
    assert_eq!(later, Some((("b", 1), false)));
    assert_eq!(drain(&fifo), [("a", 1)]);
}

#[tokio::test]
async fn putting_back_does_not_overwrite_a_newer_state() {
    let fifo = fifo();
    fifo.add(("a", 1)).unwrap();
    fifo.pop_process(|_, _| {
        fifo.add(("a", 2)).unwrap();
        Popped::Requeue(())
    })
    .await;
    assert_eq!(drain(&fifo), [("a", 2)]);
}

#[test]
fn a_function_that_panics_leaves_the_queue_in_order() {
    let fifo = fifo();
    fifo.replace([("a", 1), ("b", 1)]).unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        fifo.pop_process(|_, _| -> Popped<()> { panic!("on purpose") }).now_or_never()
    }));
    assert!(panicked.is_err());
    assert_eq!(drain(&fifo), [("b", 1)]);
    assert!(fifo.has_synced());
}

#[tokio::test(start_paused = true)]
async fn pop_waits_for_the_next_object() {
    let fifo = fifo();
    let waiting = tokio::spawn({
        let fifo = fifo.clone();
        async move { fifo.pop().await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    fifo.add(("a", 1)).unwrap();
    assert_eq!(waiting.await.unwrap(), Some(("a", 1)));
}

#[tokio::test(start_paused = true)]
async fn every_waiter_gets_an_object_of_its_own() {
    let fifo = fifo();
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            tokio::spawn({
                let fifo = fifo.clone();
                async move { fifo.pop().await }
            })
        })
        .collect();
    tokio::task::yield_now().await;
    fifo.replace([("a", 1), ("b", 1)]).unwrap();
    fifo.add(("c", 1)).unwrap();
    let mut got: Vec<_> = join_all(waiters).await.into_iter().map(|item| item.unwrap().unwrap().0).collect();
    got.sort_unstable();
    assert_eq!(got, ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_gives_up_takes_nothing_with_it() {
    let fifo = fifo();
    let mut first = Box::pin(fifo.pop());
    let mut second = Box::pin(fifo.pop());
    assert!(first.as_mut().now_or_never().is_none());
    assert!(second.as_mut().now_or_never().is_none());
    fifo.add(("a", 1)).unwrap();
    // The first has been woken and goes away without looking.
    drop(first);
    assert_eq!(second.await, Some(("a", 1)));
}

#[tokio::test(start_paused = true)]
async fn a_closed_queue_is_emptied_and_then_ends() {
    let fifo = fifo();
    let waiting = tokio::spawn({
        let fifo = fifo.clone();
        async move { (fifo.pop().await, fifo.pop().await) }
    });
    tokio::task::yield_now().await;
    fifo.add(("a", 1)).unwrap();
    fifo.close();
    assert!(fifo.is_closed());
    assert_eq!(waiting.await.unwrap(), (Some(("a", 1)), None));
}

#[derive(Debug, Clone)]
enum Step {
    Add(usize, u32),
    AddIfNotPresent(usize, u32),
    Delete(usize),
    Replace(Vec<(usize, u32)>),
    Pop,
}

fn step() -> impl Strategy<Value = Step> {
    let item = || (0_usize..4, any::<u32>());
    prop_oneof![
        item().prop_map(|(key, value)| Step::Add(key, value)),
        item().prop_map(|(key, value)| Step::AddIfNotPresent(key, value)),
        (0_usize..4).prop_map(Step::Delete),
        prop::collection::vec(item(), 0..4).prop_map(Step::Replace),
        Just(Step::Pop),
    ]
}

proptest! {
       /// The queue behaves like a plain list that is searched from the front.
       #[test]
       fn the_queue_agrees_with_a_plain_list(steps in prop::collection::vec(step(), 0..60)) {
           const NAMES: [&str; 4] = ["a", "b", "c", "d"];
           let fifo = fifo();
           let mut model: Vec<Item> = Vec::new();
           let put = |model: &mut Vec<Item>, item: Item, overwrite: bool| {
               match model.iter_mut().find(|old| old.0 == item.0) {
                   Some(old) if overwrite => *old = item,
                   Some(_) => {}
                   None => model.push(item),
               }
           };
           for step in steps {
               match step {
                   Step::Add(key, value) => {
                       fifo.add((NAMES[key], value)).unwrap();
                       put(&mut model, (NAMES[key], value), true);
                   }
                   Step::AddIfNotPresent(key, value) => {
                       fifo.add_if_not_present((NAMES[key], value)).unwrap();
                       put(&mut model, (NAMES[key], value), false);
                   }
                   Step::Delete(key) => {
                       fifo.delete(&(NAMES[key], 0)).unwrap();
                       model.retain(|item| item.0 != NAMES[key]);
                   }
                   Step::Replace(items) => {
                       let items: Vec<_> = items.into_iter().map(|(key, value)| (NAMES[key], value)).collect();
                       fifo.replace(items.clone()).unwrap();
                       model.clear();
                       for item in items {
put(&mut model, item, true);
}
                   }
                   Step::Pop => {
                       let expected = if model.is_empty() { None } else { Some(model.remove(0)) };
                       prop_assert_eq!(fifo.pop().now_or_never().flatten(), expected);
                   }
               }
               prop_assert_eq!(&fifo.list(), &model);
           }
           drain(&fifo);
           prop_assert!(fifo.has_synced() || !fifo.shared.state.lock().populated);
       }
   }
