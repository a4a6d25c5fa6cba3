//! Numbers with a meaning: one newtype per unit, so that a time is never added to a count.

use minicbor::{Decode, Encode};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
        #[cbor(transparent)]
        pub struct $name(#[n(0)] pub $inner);

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// Milliseconds since 1970-01-01T00:00:00Z, in log time.
    Timestamp(u64)
);
number!(
    /// Place of a row in the log; the first row is 1.
    Seq(u64)
);
number!(
    /// A hold's fencing number: strictly increasing over the whole log, below 2^53.
    Fence(u64)
);
number!(
    /// A hold's running number over the whole log, from 0. Internal: people see a hold id.
    HoldNo(u64)
);
number!(
    /// Place of a shop in the log's list of shops.
    ShopIx(u32)
);
number!(
    /// Place of a sale in the log's list of sales.
    SaleIx(u32)
);
number!(
    /// Place of an item in the log's list of items.
    ItemIx(u32)
);
number!(
    /// Place of a label in its sale's list of labels, under which units are set aside.
    LabelIx(u16)
);
number!(
    /// Place of a principal in the log's list of those who ever acted.
    ActorIx(u32)
);

impl Timestamp {
    /// This time moved on by whole seconds; stops at the end of time rather than wrapping.
    #[must_use]
    pub const fn plus_seconds(self, seconds: u64) -> Self {
        Self(self.0.saturating_add(seconds.saturating_mul(1_000)))
    }
}

impl ActorIx {
    /// The clock: expiry, opening, closing.
    pub const SYSTEM: Self = Self(0);
    /// The hold's own buyer.
    pub const BUYER: Self = Self(1);
    /// The first index given to a principal.
    pub const FIRST: u32 = 2;
}
