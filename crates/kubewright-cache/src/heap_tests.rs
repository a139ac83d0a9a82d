use futures::FutureExt;
use proptest::prelude::*;

use super::*;

type Item = (&'static str, i32);

fn heap() -> Heap<Item> {
    Heap::new(|item: &Item| item.0.parse(), |one: &Item, other: &Item| one.1 < other.1)
}

fn filled(items: &[Item]) -> Heap<Item> {
    let heap = heap();
    heap.bulk_add(items.iter().copied()).unwrap();
    heap
}

fn drain(heap: &Heap<Item>) -> Vec<Item> {
    std::iter::from_fn(|| heap.pop().now_or_never().flatten()).collect()
}

#[test]
fn the_smallest_comes_out_first_and_adding_again_updates() {
    let heap = heap();
    for item in [("foo", 10), ("bar", 1), ("baz", 11), ("zab", 30), ("foo", 13)] {
        heap.add(item).unwrap();
    }
    assert_eq!(heap.pop().now_or_never().flatten(), Some(("bar", 1)));
    assert_eq!(heap.pop().now_or_never().flatten(), Some(("baz", 11)));
    assert_eq!(heap.delete(&("baz", 11)).unwrap(), None, "what was popped is gone");
    heap.add(("foo", 14)).unwrap();
    assert_eq!(drain(&heap), [("foo", 14), ("zab", 30)]);
}

#[test]
fn equals_come_out_in_the_order_in_which_they_came_in() {
    let heap = filled(&[("c", 1), ("a", 1), ("z", 0), ("b", 1)]);
    heap.update(("a", 0)).unwrap();
    assert_eq!(drain(&heap), [("a", 0), ("z", 0), ("c", 1), ("b", 1)]);
}

#[test]
fn adding_what_is_absent_only_leaves_the_present_alone() {
    let heap = heap();
    for item in [("foo", 10), ("bar", 1), ("baz", 11), ("zab", 30), ("foo", 13)] {
        heap.add_if_absent(item).unwrap();
    }
    assert_eq!((heap.len(), heap.get(&("foo", 0)).unwrap()), (4, Some(("foo", 10))));
    assert_eq!(heap.pop().now_or_never().flatten(), Some(("bar", 1)));
    heap.add_if_absent(("bar", 14)).unwrap();
    assert_eq!(drain(&heap), [("foo", 10), ("baz", 11), ("bar", 14), ("zab", 30)]);
}

#[test]
fn deleting_head_middle_and_tail_keeps_the_order() {
    let heap = filled(&[("foo", 10), ("bar", 1), ("bal", 31), ("baz", 11)]);
    assert_eq!(heap.delete(&("bar", 200)).unwrap(), Some(("bar", 1)), "the key counts, not the value");
    assert_eq!(heap.pop().now_or_never().flatten(), Some(("foo", 10)));
    heap.bulk_add([("zab", 30), ("faz", 30)]).unwrap();
    assert_eq!(heap.delete(&("nobody", 10)).unwrap(), None);
    assert_eq!(heap.len(), 4);
    assert_eq!(heap.delete(&("bal", 31)).unwrap(), Some(("bal", 31)));
    assert_eq!(heap.delete(&("zab", 30)).unwrap(), Some(("zab", 30)));
    assert_eq!(drain(&heap), [("baz", 11), ("faz", 30)]);
    assert!(heap.is_empty());
}

#[test]
fn an_update_moves_both_ways() {
    let heap = filled(&[("foo", 10), ("bar", 1), ("bal", 31), ("baz", 11)]);
    heap.update(("baz", 0)).unwrap();
    assert_eq!(heap.pop().now_or_never().flatten(), Some(("baz", 0)));
    heap.update(("bar", 100)).unwrap();
    assert_eq!(drain(&heap), [("foo", 10), ("bal", 31), ("bar", 100)]);
}

#[test]
fn objects_are_found_by_key_and_listed_as_they_came() {
    let heap = filled(&[("foo", 10), ("bar", 1), ("bal", 31), ("baz", 11)]);
    assert_eq!(heap.get_by_key(&ObjectKey::cluster("baz")), Some(("baz", 11)));
    assert_eq!(heap.get_by_key(&ObjectKey::cluster("nobody")), None);
    assert_eq!(heap.get(&("nobody", 0)).unwrap(), None);
    heap.delete(&("foo", 0)).unwrap();
    heap.add(("foo", 0)).unwrap();
    heap.update(("bal", 5)).unwrap();
    assert_eq!(heap.list(), [("bar", 1), ("bal", 5), ("baz", 11), ("foo", 0)]);
    let keys: Vec<_> = heap.list_keys().iter().map(ToString::to_string).collect();
    assert_eq!(keys, ["bar", "bal", "baz", "foo"]);
}

#[test]
fn an_object_without_a_key_is_refused_and_changes_nothing() {
    let heap = filled(&[("a", 1)]);
    assert!(matches!(heap.add(("", 0)), Err(HeapError::Key(_))));
    assert!(matches!(heap.bulk_add([("b", 0), ("", 0)]), Err(HeapError::Key(_))));
    assert!(heap.get(&("", 0)).is_err() && heap.delete(&("", 0)).is_err());
    assert_eq!(drain(&heap), [("a", 1)]);
}

#[test]
fn a_closed_heap_takes_nothing_and_gives_what_it_has() {
    let heap = filled(&[("a", 1)]);
    assert!(!heap.is_closed());
    heap.close();
    assert!(heap.is_closed());
    assert_eq!(heap.add(("b", 1)), Err(HeapError::Closed));
    assert_eq!(heap.update(("a", 1)), Err(HeapError::Closed));
    assert_eq!(heap.add_if_absent(("b", 1)), Err(HeapError::Closed));
    assert_eq!(heap.bulk_add([("b", 1)]), Err(HeapError::Closed));
    assert_eq!(heap.pop().now_or_never(), Some(Some(("a", 1))));
    assert_eq!(heap.pop().now_or_never(), Some(None));
}

#[tokio::test(start_paused = true)]
async fn pop_waits_for_an_object_or_the_end() {
    let heap = heap();
    let waiting = tokio::spawn({
        let heap = heap.clone();
        async move { (heap.pop().await, heap.pop().await) }
    });
    tokio::task::yield_now().await;
    heap.add(("a", 1)).unwrap();
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    heap.close();
    assert_eq!(waiting.await.unwrap(), (Some(("a", 1)), None));
}

#[tokio::test(start_paused = true)]
async fn a_waiter_sees_a_bulk_only_when_it_is_whole() {
    let heap = heap();
    let mut first = Box::pin(heap.pop());
    let mut second = Box::pin(heap.pop());
    assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
    heap.bulk_add([("c", 3), ("b", 2), ("a", 1)]).unwrap();
    assert_eq!((first.await, second.await), (Some(("a", 1)), Some(("b", 2))));
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_gives_up_takes_nothing_with_it() {
    let heap = heap();
    let mut first = Box::pin(heap.pop());
    let mut second = Box::pin(heap.pop());
    assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
    heap.add(("a", 1)).unwrap();
    drop(first);
    assert_eq!(second.await, Some(("a", 1)));
}

#[derive(Debug, Clone)]
enum Step {
    Add(usize, i32),
    AddIfAbsent(usize, i32),
    BulkAdd(Vec<(usize, i32)>),
    Delete(usize),
    Pop,
}

fn step() -> impl Strategy<Value = Step> {
    let item = || (0_usize..12, 0_i32..6);
    prop_oneof![
        4 => item().prop_map(|(key, rank)| Step::Add(key, rank)),
        1 => item().prop_map(|(key, rank)| Step::AddIfAbsent(key, rank)),
        1 => prop::collection::vec(item(), 0..6).prop_map(Step::BulkAdd),
        2 => (0_usize..12).prop_map(Step::Delete),
        2 => Just(Step::Pop),
    ]
}

proptest! {
       /// The heap behaves like a list in order of arrival from which the smallest is picked.
       #[test]
       fn the_heap_agrees_with_a_plain_list(steps in prop::collection::vec(step(), 0..120)) {
           const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
           let heap = heap();
           let mut model: Vec<Item> = Vec::new();
           let put = |model: &mut Vec<Item>, item: Item, overwrite: bool| {
               match model.iter_mut().find(|old| old.0 == item.0) {
                   Some(old) if overwrite => *old = item,
                   Some(_) => {}
                   None => model.push(item),
               }
           };
           let pop = |model: &mut Vec<Item>| {
               let smallest = (0..model.len()).min_by_key(|index| (model[*index].1, *index))?;
               Some(model.remove(smallest))
           };
           for step in steps {
               match step {
                   Step::Add(key, rank) => {
                       heap.add((NAMES[key], rank)).unwrap();
                       put(&mut model, (NAMES[key], rank), true);
                   }
                   Step::AddIfAbsent(key, rank) => {
                       heap.add_if_absent((NAMES[key], rank)).unwrap();
                       put(&mut model, (NAMES[key], rank), false);
                   }
                   Step::BulkAdd(items) => {
                       let items: Vec<_> = items.into_iter().map(|(key, rank)| (NAMES[key], rank)).collect();
                       heap.bulk_add(items.clone()).unwrap();
                       for item in items {
put(&mut model, item, true);
}
                   }
                   Step::Delete(key) => {
                       let expected = model.iter().position(|item| item.0 == NAMES[key]).map(|at| model.remove(at));
                       prop_assert_eq!(heap.delete(&(NAMES[key], 0)).unwrap(), expected);
                   }
                   Step::Pop => prop_assert_eq!(heap.pop().now_or_never().flatten(), pop(&mut model)),
               }
               prop_assert_eq!(&heap.list(), &model);
           }
           let rest: Vec<_> = std::iter::from_fn(|| pop(&mut model)).collect();
           prop_assert_eq!(drain(&heap), rest);
       }
   }
