//! `state_sum`: a wrapping sum of a fixed-key hash of every entry, free of any map's order (RULES R14).

use alloc::vec::Vec;

use minicbor::Encode;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// Kinds of entries; part of each hash, so that equal bytes of two kinds differ. Never reuse a number.
pub(super) const LOG: u8 = 1;
pub(super) const SHOP: u8 = 2;
pub(super) const ACTOR: u8 = 3;
pub(super) const SALE: u8 = 4;
pub(super) const ITEM: u8 = 5;
pub(super) const COUNTS: u8 = 6;
pub(super) const HOLD: u8 = 7;
pub(super) const LINES: u8 = 8;
pub(super) const EXTRA: u8 = 9;
pub(super) const PAYMENT: u8 = 10;
pub(super) const BUYER: u8 = 11;
pub(super) const KEY: u8 = 12;
pub(super) const BLOCK: u8 = 13;
pub(super) const SEAT: u8 = 14;
pub(super) const SEAT_STATE: u8 = 15;
pub(super) const ERASED: u8 = 16;

/// Hash of one entry.
pub(super) fn entry(kind: u8, id: u64, bytes: &[u8]) -> u128 {
    xxh3_128_with_seed(bytes, u64::from(kind) << 56 ^ id)
}

/// Hash of one entry by its encoding: for what changes seldom.
pub(super) fn encoded<T: Encode<()> + ?Sized>(kind: u8, id: u64, value: &T) -> u128 {
    let mut bytes = Vec::with_capacity(128);
    minicbor::encode(value, &mut bytes).expect("writing to a vector cannot fail");
    entry(kind, id, &bytes)
}
