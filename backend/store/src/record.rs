//! The bytes of one record: the only place that knows the layout.
//!
//! ```text
//! u8 version | u32 crc32c | u64 revision | [32] chain hash before | [32] state hash
//! u32 body bytes | u8 has idempotency | body
//! if so: u16 key bytes | u32 reply bytes | [16] request hash | u64 ts_ms | key | reply
//! ```
//!
//! Integers are little-endian. The checksum covers every byte but its own four. The frame holds
//! the chain hash before it, so its own chain hash is simply BLAKE3 of the frame. Decoding is
//! total: any bytes give a frame or a [`Flaw`].

use crate::error::{Flaw, LogError};
use crate::{IdempotencyEntry, Record};

pub const FRAME_VERSION: u8 = 1;
/// A bulk import is one command, and its request may have 64 MiB.
pub const MAX_BODY_BYTES: usize = 64 << 20;
pub const MAX_KEY_BYTES: usize = 1024;
pub const MAX_REPLY_BYTES: usize = 64 << 20;

const CHECKED_FROM: usize = 5;

/// A decoded frame that borrows from its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub revision: u64,
    pub previous: [u8; 32],
    pub state_hash: [u8; 32],
    pub body: &'a [u8],
    pub idempotency: Option<IdempotencyRef<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdempotencyRef<'a> {
    pub key: &'a [u8],
    pub request_hash: [u8; 16],
    pub ts_ms: u64,
    pub reply: &'a [u8],
}

impl Frame<'_> {
    pub fn to_record(&self) -> Record {
        Record {
            revision: self.revision,
            state_hash: self.state_hash,
            body: self.body.to_vec(),
            idempotency: self.idempotency.map(|entry| IdempotencyEntry {
                key: entry.key.to_vec(),
                request_hash: entry.request_hash,
                ts_ms: entry.ts_ms,
                reply: entry.reply.to_vec(),
            }),
        }
    }
}

/// Replaces the content of `out` by the frame of `record` and returns its chain hash.
pub fn encode(
    record: &Record,
    previous: &[u8; 32],
    out: &mut Vec<u8>,
) -> Result<[u8; 32], LogError> {
    let body_bytes = limited("a command", record.body.len(), MAX_BODY_BYTES)?;
    out.clear();
    out.push(FRAME_VERSION);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&record.revision.to_le_bytes());
    out.extend_from_slice(previous);
    out.extend_from_slice(&record.state_hash);
    out.extend_from_slice(&body_bytes.to_le_bytes());
    out.push(u8::from(record.idempotency.is_some()));
    out.extend_from_slice(&record.body);
    if let Some(entry) = &record.idempotency {
        let key_bytes = limited("an idempotency key", entry.key.len(), MAX_KEY_BYTES)? as u16;
        let reply_bytes = limited("a stored reply", entry.reply.len(), MAX_REPLY_BYTES)?;
        out.extend_from_slice(&key_bytes.to_le_bytes());
        out.extend_from_slice(&reply_bytes.to_le_bytes());
        out.extend_from_slice(&entry.request_hash);
        out.extend_from_slice(&entry.ts_ms.to_le_bytes());
        out.extend_from_slice(&entry.key);
        out.extend_from_slice(&entry.reply);
    }
    let crc = out.get(CHECKED_FROM..).map_or(0, checksum);
    if let Some(place) = out.get_mut(1..CHECKED_FROM) {
        place.copy_from_slice(&crc.to_le_bytes());
    }
    Ok(chain_hash(out))
}

/// Reads a frame. The checksum is compared before any part is believed.
pub fn decode(bytes: &[u8]) -> Result<Frame<'_>, Flaw> {
    let mut parts = Parts(bytes);
    let [version] = parts.array()?;
    if version != FRAME_VERSION {
        return Err(Flaw::Version(version));
    }
    let stored = u32::from_le_bytes(parts.array()?);
    let computed = checksum(parts.0);
    if stored != computed {
        return Err(Flaw::Checksum { stored, computed });
    }
    let revision = u64::from_le_bytes(parts.array()?);
    let previous = parts.array()?;
    let state_hash = parts.array()?;
    let body_bytes = u32::from_le_bytes(parts.array()?);
    let [has_idempotency] = parts.array()?;
    let body = parts.take(body_bytes as usize)?;
    let idempotency = match has_idempotency {
        0 => None,
        1 => {
            let key_bytes = u16::from_le_bytes(parts.array()?);
            let reply_bytes = u32::from_le_bytes(parts.array()?);
            Some(IdempotencyRef {
                request_hash: parts.array()?,
                ts_ms: u64::from_le_bytes(parts.array()?),
                key: parts.take(usize::from(key_bytes))?,
                reply: parts.take(reply_bytes as usize)?,
            })
        }
        _ => return Err(Flaw::Layout),
    };
    if !parts.0.is_empty() {
        return Err(Flaw::Layout);
    }
    Ok(Frame { revision, previous, state_hash, body, idempotency })
}

pub(crate) fn chain_hash(frame: &[u8]) -> [u8; 32] {
    *blake3::hash(frame).as_bytes()
}

fn checksum(rest: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&[FRAME_VERSION]), rest)
}

fn limited(what: &'static str, bytes: usize, max: usize) -> Result<u32, LogError> {
    if bytes > max {
        return Err(LogError::TooLarge { what, bytes: bytes as u64, max: max as u64 });
    }
    Ok(bytes as u32)
}

/// The bytes that have not been read yet.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], Flaw> {
        let Some((head, rest)) = self.0.split_at_checked(bytes) else {
            return Err(Flaw::Short { have: self.0.len() as u64 });
        };
        self.0 = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Flaw> {
        let Some((head, rest)) = self.0.split_first_chunk::<N>() else {
            return Err(Flaw::Short { have: self.0.len() as u64 });
        };
        self.0 = rest;
        Ok(*head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(with_key: bool) -> Record {
        Record {
            revision: 7,
            state_hash: [3; 32],
            body: b"place vm-1".to_vec(),
            idempotency: with_key.then(|| IdempotencyEntry {
                key: b"key".to_vec(),
                request_hash: [5; 16],
                ts_ms: 1_234,
                reply: b"host-9".to_vec(),
            }),
        }
    }

    fn framed(with_key: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(&record(with_key), &[1; 32], &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        for with_key in [false, true] {
            let bytes = framed(with_key);
            let frame = decode(&bytes).unwrap();
            assert_eq!(frame.to_record(), record(with_key));
            assert_eq!(frame.previous, [1; 32]);
        }
    }

    #[test]
    fn every_changed_bit_is_refused() {
        for with_key in [false, true] {
            let bytes = framed(with_key);
            for bit in 0..bytes.len() * 8 {
                let mut bad = bytes.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                assert!(decode(&bad).is_err(), "bit {bit} flipped and accepted");
            }
        }
    }

    #[test]
    fn every_truncation_and_every_extension_is_refused() {
        for with_key in [false, true] {
            let mut bytes = framed(with_key);
            for length in 0..bytes.len() {
                assert!(decode(&bytes[..length]).is_err(), "{length} bytes accepted");
            }
            bytes.push(0);
            assert!(decode(&bytes).is_err());
        }
    }

    #[test]
    fn a_true_checksum_over_nonsense_is_still_refused() {
        // Everything behind the checksum is chosen by a generator, so only the layout is left to fail.
        let mut state = 0x9E37_79B9_u64;
        for length in 0..400_usize {
            let mut bytes = vec![FRAME_VERSION, 0, 0, 0, 0];
            for _ in 0..length {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                bytes.push((state >> 33) as u8 & 1);
            }
            let crc = checksum(&bytes[CHECKED_FROM..]);
            bytes[1..5].copy_from_slice(&crc.to_le_bytes());
            if let Ok(frame) = decode(&bytes) {
                let mut again = Vec::new();
                encode(&frame.to_record(), &frame.previous, &mut again).unwrap();
                assert_eq!(again, bytes, "{length} bytes have two encodings");
            }
        }
    }

    #[test]
    fn too_long_a_key_is_refused_when_it_is_written() {
        let mut record = record(true);
        record.idempotency.as_mut().unwrap().key = vec![0; MAX_KEY_BYTES + 1];
        let error = encode(&record, &[0; 32], &mut Vec::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "an idempotency key has 1025 bytes, at most 1024 are allowed"
        );
    }
}
