//! Every bound of the core, named once. An error that reports a bound takes it from here.

/// Longest caller-chosen id, in bytes.
pub const NAME_BYTES_MAX: usize = 64;
/// Longest idempotency key, in bytes.
pub const KEY_BYTES_MAX: usize = 255;
/// Most lines in one hold.
pub const HOLD_LINES_MAX: usize = 32;
/// Most seats in one hold.
pub const HOLD_SEATS_MAX: usize = 1_000;
/// Most taken seats that one refusal lists.
pub const SEAT_LACKS_MAX: usize = 32;
/// Most units that one item may have, and most units that one line may ask for.
pub const TOTAL_MAX: u32 = 1_000_000_000;
/// Largest metadata, in bytes of JSON text.
pub const METADATA_BYTES_MAX: usize = 2_048;
/// Longest time to live that a seller or an admin may give a hold: 400 days.
pub const TTL_SECONDS_MAX: u32 = 400 * 24 * 3_600;
/// Most other items that one item may count against, those that follow included.
pub const DRAWS_MAX: usize = 8;
/// Most labels under which one item may have units set aside.
pub const ITEM_LABELS_MAX: usize = 32;
/// Most labels that one sale may ever use.
pub const SALE_LABELS_MAX: usize = 1_000;
/// Most limits in one sale.
pub const SALE_LIMITS_MAX: usize = 32;
/// Most items in one sale.
pub const SALE_ITEMS_MAX: usize = 10_000;
/// Most items that one limit may name.
pub const LIMIT_ITEMS_MAX: usize = 200;
/// Longest free text (title, reason, payment reference), in bytes.
pub const TEXT_BYTES_MAX: usize = 256;
/// Longest row of lapsed holds that one turn expires before it stops the clock for the rest.
pub const TURN_EXPIRES_MAX: usize = 8_192;
/// Queue entries that one turn looks at while it searches for lapsed holds.
pub const TURN_LAPSE_SCAN_MAX: usize = 65_536;
/// Live holds that `may_free_at` looks through before it answers "unknown".
pub const MAY_FREE_HOLDS_MAX: usize = 64;
/// Queue entries that `may_free_at` looks at, dead ones included.
pub const MAY_FREE_SCAN_MAX: usize = 1_024;
/// So many free units are few in every item…
pub const FEW_MAX: u32 = 10;
/// … and in a large one this part of its total: a fiftieth, 2 %.
pub const FEW_SHARE: u32 = 50;
/// Keys that one turn sweeps out of memory.
pub const TURN_KEY_SWEEP_MAX: usize = 512;
/// Largest integer on the wire: 2^53 - 1, the last one that every JSON reader keeps exact.
pub const WIRE_INTEGER_MAX: u64 = (1 << 53) - 1;
/// Holds in one turn that may be created: the index in a hold id has 16 bits.
pub const TURN_HOLDS_MAX: usize = 65_535;

const _: () = assert!(TURN_EXPIRES_MAX <= TURN_LAPSE_SCAN_MAX);
const _: () =
    assert!(TOTAL_MAX < u32::MAX / 2, "held + sold + blocked must fit beside total + oversell");
