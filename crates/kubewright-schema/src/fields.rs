//! Named fields of an object: sorted by name, with a hash index.
//!
//! Decoding, canonicalisation, field tracking and storage look up each key of an object several times per
//! write. A binary search takes five or six string comparisons, this index nearly always one.

use std::ops::Deref;

use super::node::{Field, Presence};

/// Named fields of an object, sorted by name.
///
/// ```
/// use kubewright_schema::{Gvk, Schemas};
///
/// let pod = Schemas::builtin().lookup(&Gvk::new("", "v1", "Pod")).unwrap();
/// let fields = &pod.as_object().unwrap().fields;
/// assert!(fields.is_sorted_by_key(|field| &*field.name));
/// assert_eq!(fields.get("spec").map(|field| &*field.name), Some("spec"));
/// assert!(fields.get("specs").is_none());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Fields {
    sorted: Vec<Field>,
    /// Indexes into `sorted` plus one, by hash; 0 is a free slot. At least half of the slots are free.
    slots: Box<[u16]>,
    always_encoded: usize,
}

impl Fields {
    /// Returns the field with this name.
    pub fn get(&self, name: &str) -> Option<&Field> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut at = hash(name) & mask;
        loop {
            let place = usize::from(self.slots[at]).checked_sub(1)?;
            let field = &self.sorted[place];
            if *field.name == *name {
                return Some(field);
            }
            at = (at + 1) & mask;
        }
    }

    /// Returns the number of fields that are encoded even if not set.
    pub(crate) fn always_encoded(&self) -> usize {
        self.always_encoded
    }

    /// Inserts a field, replacing the one with the same name.
    pub(crate) fn insert(&mut self, field: Field) {
        let mut fields = std::mem::take(&mut self.sorted);
        fields.retain(|other| other.name != field.name);
        fields.push(field);
        *self = fields.into();
    }
}

/// Hashes length, first, middle and last byte, in which field names mostly differ.
fn hash(name: &str) -> usize {
    let bytes = name.as_bytes();
    let at = |n: usize| bytes.get(n).copied().map_or(0, usize::from);
    let length = bytes.len();
    at(0) ^ (at(length / 2) << 2) ^ (at(length.wrapping_sub(1)) << 4) ^ (length << 3)
}

impl From<Vec<Field>> for Fields {
    fn from(mut sorted: Vec<Field>) -> Self {
        sorted.sort_by(|a, b| a.name.cmp(&b.name));
        // Slots are 16 bits wide; more fields do not fit into a definition of 3 MiB.
        sorted.truncate(usize::from(u16::MAX));
        let mut slots = vec![0; (sorted.len() * 2).next_power_of_two()].into_boxed_slice();
        if sorted.is_empty() {
            slots = Box::default();
        }
        let mask = slots.len().saturating_sub(1);
        for (place, field) in (1..).zip(&sorted) {
            let mut at = hash(&field.name) & mask;
            while slots[at] != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = place;
        }
        let always = |field: &&Field| matches!(field.presence, Presence::Always | Presence::AlwaysNull);
        let always_encoded = sorted.iter().filter(always).count();
        Self { sorted, slots, always_encoded }
    }
}

impl FromIterator<Field> for Fields {
    fn from_iter<I: IntoIterator<Item = Field>>(fields: I) -> Self {
        fields.into_iter().collect::<Vec<_>>().into()
    }
}

impl Deref for Fields {
    type Target = [Field];

    fn deref(&self) -> &[Field] {
        &self.sorted
    }
}

impl<'a> IntoIterator for &'a Fields {
    type Item = &'a Field;
    type IntoIter = std::slice::Iter<'a, Field>;

    fn into_iter(self) -> Self::IntoIter {
        self.sorted.iter()
    }
}

#[cfg(test)]
mod tests {
    use crate::Schemas;

    #[test]
    fn every_field_of_every_type_is_found_and_no_other() {
        for definition in Schemas::builtin().definitions() {
            let Some(object) = definition.schema.as_object() else { continue };
            for field in &object.fields {
                let found = object.fields.get(&field.name).map(|found| &*found.name);
                assert_eq!(found, Some(&*field.name), "{}", definition.name);
                assert!(object.fields.get(&format!("{}x", field.name)).is_none());
            }
            assert!(object.fields.get("").is_none());
        }
    }
}
