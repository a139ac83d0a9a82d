use super::*;

fn text(i: usize) -> String {
    let labels = format!(r#"{{"app":"shop-{}"}}"#, i % 7);
    format!(
        r#"{{"kind":"Pod","metadata":{{"name":"web-{i}","labels":{labels}}},"spec":{{"nodeName":"node-{}"}}}}"#,
        i % 11
    )
}

/// Above the size of small objects.
fn long(i: usize) -> String {
    format!(r#"{{"spec":"{}","of":{}}}"#, "as every other one is ".repeat(SMALL / 16), text(i))
}

fn assert_unpacked(packed: &[Packed], text: impl Fn(usize) -> String) {
    for (i, packed) in packed.iter().enumerate() {
        assert_eq!(packed.unpack(<[u8]>::to_vec).unwrap(), text(i).into_bytes());
    }
}

#[test]
fn objects_are_unpacked_with_the_dictionary_they_were_packed_with() {
    let packer = Packer::new();
    let packed: Vec<_> = (0..3 * TRAIN_AT).map(|i| packer.pack(long(i).as_bytes(), None)).collect();
    assert_unpacked(&packed, long);
    assert!(packer.state.lock().trained);
    let last = packed.last().unwrap().heap_size();
    assert!(last * 3 < long(0).len(), "{last}");
}

#[test]
fn small_objects_that_resemble_each_other_are_deltas_of_one_base() {
    let packer = Packer::new();
    let packed: Vec<_> = (0..100).map(|i| packer.pack(text(i).as_bytes(), None)).collect();
    assert_unpacked(&packed, text);
    for packed in &packed[1..] {
        assert!(packed.heap_size() * 4 <= text(0).len(), "{}", packed.heap_size());
    }
    let base = |packed: &Packed| Arc::as_ptr(packed.base.as_ref().unwrap());
    assert!(packed[1..].iter().all(|other| base(other) == base(&packed[1])));
}

#[test]
fn the_base_of_small_objects_is_replaced_after_a_few_misses() {
    let other = |i: usize| {
        let times =
            r#""acquireTime":"2026-01-02T03:04:05.000000Z","leaseDurationSeconds":15,"leaseTransitions":1"#;
        format!(r#"{{"kind":"Lease","spec":{{{times},"holderIdentity":"node-{:03}"}}}}"#, i % 1000)
    };
    let packer = Packer::new();
    let pods: Vec<_> = (0..100).map(|i| packer.pack(text(i).as_bytes(), None)).collect();
    let leases: Vec<_> = (0..100).map(|i| packer.pack(other(i).as_bytes(), None)).collect();
    assert_unpacked(&pods, text);
    assert_unpacked(&leases, other);
    let is_delta = |packed: &Packed| packed.base.as_ref().is_some_and(|base| base.text().is_some());
    let compressed = leases.iter().take_while(|packed| !is_delta(packed)).count();
    assert_eq!(compressed, MISSES as usize);
    assert!(leases[compressed..].iter().all(is_delta));
}

#[test]
fn the_base_of_small_objects_without_deltas_is_replaced_ever_more_rarely() {
    let packer = Packer::new();
    let unique = |i: usize| {
        format!(
            "{:032x}{:032x}",
            (i as u128 + 1).wrapping_mul(u128::MAX / 7919),
            !(i as u128).wrapping_mul(u128::MAX / 104_729)
        )
    };
    let packed: Vec<_> = (0..2000).map(|i| packer.pack(unique(i).as_bytes(), None)).collect();
    assert_unpacked(&packed, unique);
    assert!(packer.state.lock().small.limit >= 64 * MISSES);
}

/// Text of an object of an application, most of which no other application has.
fn of_owner(owner: usize, i: usize) -> String {
    let own: Vec<String> = (0..60_u64)
        .map(|n| format!("{:x}", (owner as u64 * 64 + n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)))
        .collect();
    let own = own.concat();
    format!(r#"{{"own":"{own}","of":{}}}"#, text(i))
}

#[test]
fn objects_of_one_owner_are_deltas_of_the_first() {
    let packer = Packer::new();
    // More owners than are held as text; each has four objects in a row, and comes again later.
    let owner = |i: usize| i / 4 % 100;
    let of = |i: usize| of_owner(owner(i), i);
    let packed: Vec<_> =
        (0..800).map(|i| packer.pack(of(i).as_bytes(), Some(&format!("uid-{}", owner(i))))).collect();
    assert_unpacked(&packed, of);
    for (i, packed) in packed.iter().enumerate() {
        if i.is_multiple_of(4) {
            assert!(packed.bytes.is_empty());
        } else {
            assert!((1..80).contains(&packed.heap_size()), "{}", packed.heap_size());
        }
    }
    assert_eq!(packer.state.lock().siblings.first.len(), SIBLINGS.get());
}

#[test]
fn an_object_that_differs_from_its_siblings_becomes_the_first() {
    let packer = Packer::new();
    let of = |i: usize| of_owner(i / 3, i);
    let packed: Vec<_> = (0..9).map(|i| packer.pack(of(i).as_bytes(), Some("uid"))).collect();
    assert_unpacked(&packed, of);
    assert!((0..9).all(|i| packed[i].bytes.is_empty() == (i % 3 == 0)));
}

#[test]
fn a_text_that_does_not_shrink_is_stored_as_it_is() {
    let packed = Packer::new().pack(b"{}", None);
    assert!(packed.base.is_none());
    assert_eq!(packed.unpack(<[u8]>::to_vec).unwrap(), b"{}");
}

#[test]
fn samples_that_cannot_train_a_dictionary_leave_the_first_one_in_use() {
    let packer = Packer::new();
    for _ in 0..2 * TRAIN_AT {
        packer.pack(b"{}", None);
    }
    assert_eq!(packer.pack(b"{}", None).unpack(<[u8]>::to_vec).unwrap(), b"{}");
}
