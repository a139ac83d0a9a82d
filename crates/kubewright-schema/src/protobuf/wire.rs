//! Protobuf wire format: varints, and fields by number.

/// Error decoding protobuf, with the messages of Go's decoders.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtobufError {
    /// The body is empty.
    #[error("empty data")]
    Empty,
    /// The prefix of four bytes is missing.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NoPrefix,
    /// The bytes end within a value.
    #[error("unexpected EOF")]
    Truncated,
    /// A varint overflows 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// The wire type of a field does not match its type.
    #[error("proto: wrong wireType = {wire} for field {field}")]
    WireType {
        /// The wire type.
        wire: u8,
        /// The field.
        field: String,
    },
    /// Unsupported wire type, or field number 0.
    #[error("proto: illegal tag {0}")]
    Tag(u64),
    /// Messages are nested too deeply.
    #[error("exceeded max depth")]
    TooDeep,
    /// A field has a value that its type cannot represent.
    #[error("{field}: {why}")]
    Value {
        /// The field.
        field: String,
        /// The reason.
        why: String,
    },
    /// There is no such built-in type.
    #[error(
        "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/api/legacyscheme/scheme.go:30\""
    )]
    UnknownKind {
        /// The version in the document.
        api_version: String,
        /// The kind in the document.
        kind: String,
    },
}

/// Payload of one field.
#[derive(Debug, Clone, Copy)]
pub(super) enum Payload<'b> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'b [u8]),
    Fixed32,
}

impl<'b> Payload<'b> {
    fn mismatch(self, field: &str) -> ProtobufError {
        let wire = match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Fixed32 => 5,
        };
        ProtobufError::WireType { wire, field: field.to_owned() }
    }

    pub(super) fn bytes(self, field: &str) -> Result<&'b [u8], ProtobufError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            other => Err(other.mismatch(field)),
        }
    }

    /// Returns the text; invalid UTF-8 is replaced, as by Go's JSON encoder.
    pub(super) fn text(self, field: &str) -> Result<String, ProtobufError> {
        self.bytes(field).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    pub(super) fn varint(self, field: &str) -> Result<u64, ProtobufError> {
        match self {
            Self::Varint(number) => Ok(number),
            other => Err(other.mismatch(field)),
        }
    }

    pub(super) fn double(self, field: &str) -> Result<f64, ProtobufError> {
        match self {
            Self::Fixed64(bits) => Ok(f64::from_bits(bits)),
            other => Err(other.mismatch(field)),
        }
    }
}

/// Iterator over the fields of a message.
#[derive(Debug, Clone)]
pub(super) struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(super) fn new(message: &'b [u8]) -> Self {
        Self { rest: message }
    }

    /// Returns the next field number and payload; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Payload<'b>)>, ProtobufError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let payload = match tag & 7 {
            0 => Payload::Varint(self.varint()?),
            1 => Payload::Fixed64(self.take(8)?.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b))),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| ProtobufError::Overflow)?;
                Payload::Bytes(self.take(length)?)
            }
            5 => {
                self.take(4)?;
                Payload::Fixed32
            }
            _ => return Err(ProtobufError::Tag(tag)),
        };
        match tag >> 3 {
            0 => Err(ProtobufError::Tag(tag)),
            number => Ok(Some((number, payload))),
        }
    }

    /// Returns the next number of a packed list; `None` at the end.
    pub(super) fn packed(&mut self) -> Result<Option<u64>, ProtobufError> {
        if self.rest.is_empty() { Ok(None) } else { self.varint().map(Some) }
    }

    fn take(&mut self, length: usize) -> Result<&'b [u8], ProtobufError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(ProtobufError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(ProtobufError::Truncated)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ProtobufError::Overflow)
    }
}

pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Appends an integer field; negative values take ten bytes.
pub(super) fn put_number(out: &mut Vec<u8>, field: u16, value: i64) {
    put_varint(out, u64::from(field) << 3);
    put_varint(out, value.cast_unsigned());
}

/// Appends a double field.
pub(super) fn put_double(out: &mut Vec<u8>, field: u16, value: f64) {
    put_varint(out, u64::from(field) << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a string, bytes or message field.
pub(super) fn put_bytes(out: &mut Vec<u8>, field: u16, bytes: &[u8]) {
    put_varint(out, u64::from(field) << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_round_trip() {
        let mut bytes = Vec::new();
        put_number(&mut bytes, 1, -1);
        put_double(&mut bytes, 2, 0.5);
        put_bytes(&mut bytes, 300, b"text");
        let mut reader = Reader::new(&bytes);
        let (number, payload) = reader.next().unwrap().unwrap();
        assert_eq!((number, payload.varint("a").unwrap().cast_signed()), (1, -1));
        let (number, payload) = reader.next().unwrap().unwrap();
        assert_eq!((number, payload.double("b").unwrap().to_bits()), (2, 0.5_f64.to_bits()));
        assert_eq!(payload.bytes("b").unwrap_err().to_string(), "proto: wrong wireType = 1 for field b");
        let (number, payload) = reader.next().unwrap().unwrap();
        assert_eq!((number, payload.text("c").unwrap().as_str()), (300, "text"));
        assert!(reader.next().unwrap().is_none());
    }

    #[test]
    fn malformed_bytes_are_rejected() {
        let read = |bytes: &[u8]| Reader::new(bytes).next().unwrap_err();
        assert_eq!(read(&[0x0a, 5, b'a']), ProtobufError::Truncated);
        assert_eq!(read(&[0x08, 0x80]), ProtobufError::Truncated);
        assert_eq!(read(&[0x09, 0]), ProtobufError::Truncated);
        assert_eq!(read(&[0x0d, 0]), ProtobufError::Truncated);
        assert_eq!(read(&[0xff; 12]), ProtobufError::Overflow);
        assert_eq!(
            read(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
            ProtobufError::Truncated
        );
        assert_eq!(read(&[0x02, 0]), ProtobufError::Tag(2));
        assert_eq!(read(&[0x0b]), ProtobufError::Tag(11));
    }
}
