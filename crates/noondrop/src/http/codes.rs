//! Every code that an answer can carry: one row each, from which docs, tests and answers take status and retry.

/// What a client may do about an answer that is not a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The same request will get the same answer.
    No,
    /// Send the same request with the same key again, later.
    SameKey,
    /// Try again with a new key: the old one keeps its answer.
    NewKey,
}

impl Retry {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::SameKey => "same_key",
            Self::NewKey => "new_key",
        }
    }
}

/// One code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeRow {
    /// The code: stable, `snake_case`, with a page under `docs/errors`.
    pub code: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// Whether a key with this answer replays it.
    pub recorded: bool,
    /// What a client may do.
    pub retry: Retry,
    /// A few words.
    pub title: &'static str,
}

const fn row(
    code: &'static str,
    status: u16,
    recorded: bool,
    retry: Retry,
    title: &'static str,
) -> CodeRow {
    CodeRow { code, status, recorded, retry, title }
}

use Retry::{NewKey, No, SameKey};

/// The table.
pub const CODES: &[CodeRow] = &[
    row("key_missing", 400, false, No, "An idempotency key is needed"),
    row("key_malformed", 400, false, No, "The idempotency key is malformed"),
    row("invalid_field", 400, false, No, "A field has a value that it may not have"),
    row("unknown_field", 400, false, No, "A field is not known"),
    row("unauthenticated", 401, false, No, "Who is calling is not known"),
    row("forbidden", 403, false, No, "This role may not do that"),
    row("not_found", 404, false, No, "No such route"),
    row("shop_not_found", 404, false, No, "No such shop"),
    row("sale_not_found", 404, false, No, "No such sale"),
    row("item_not_found", 404, false, No, "No such item"),
    row("seat_not_found", 404, false, No, "No such seat"),
    row("hold_not_found", 404, false, No, "No such hold"),
    row("method_not_allowed", 405, false, No, "The route has no such method"),
    row("sale_paused", 409, false, SameKey, "The sale is paused"),
    row("sale_not_open", 409, false, SameKey, "The sale is not open"),
    row("sale_closed", 409, false, No, "The sale is closed"),
    row("sale_archived", 409, false, No, "The sale is archived"),
    row("item_quarantined", 409, false, SameKey, "The item's counts are being checked"),
    row("reference_in_use", 409, true, No, "Another hold has this reference"),
    row("buyer_has_hold", 409, true, No, "The buyer has a hold already"),
    row("limit_per_buyer", 409, true, No, "The buyer would have too many"),
    row("sold_out", 409, true, No, "Sold out"),
    row("all_held", 409, true, NewKey, "Everything is in other baskets"),
    row("not_enough_free", 409, true, NewKey, "Not enough free units"),
    row("seat_taken", 409, true, NewKey, "A seat is taken"),
    row("not_together", 409, true, NewKey, "Not so many together"),
    row("units_gone", 409, true, No, "The units went to others"),
    row("stale_fence", 409, true, No, "The fence is another hold's"),
    row("hold_expired", 409, true, No, "The hold has expired"),
    row("hold_released", 409, true, No, "The hold was released"),
    row("hold_confirmed", 409, true, No, "The hold is confirmed"),
    row("hold_cancelled", 409, true, No, "The hold was cancelled"),
    row("confirmed_with_other_payment", 409, true, No, "Another payment confirmed the hold"),
    row("buyer_has_live_holds", 409, false, SameKey, "The buyer has live holds"),
    row("use_adjust", 409, false, No, "A total is changed with adjust"),
    row("version_mismatch", 409, false, No, "It changed meanwhile"),
    row("history_changed", 412, false, No, "The log took another way"),
    row("too_large", 413, false, No, "The body is too large"),
    row("unsupported_media_type", 415, false, No, "The body must be JSON"),
    row("key_reused", 422, false, No, "The key was used for something else"),
    row("rate_limited", 429, false, SameKey, "Too many attempts"),
    row("internal", 500, false, SameKey, "A bug on our side"),
    row("overloaded", 503, false, SameKey, "Overloaded; surely not done"),
    row("outcome_unknown", 503, false, SameKey, "Not known yet; the same key tells"),
    row("keys_full", 503, false, SameKey, "No room for a new key"),
    row("not_ready", 503, false, SameKey, "Not ready yet"),
];

/// The row of a code. Every code that the program uses has one; a test looks.
#[must_use]
pub fn code_row(code: &str) -> &'static CodeRow {
    let found = CODES.iter().find(|row| row.code == code);
    found.or_else(|| CODES.iter().find(|row| row.code == "internal")).expect("the table has it")
}
