//! What is asked about a person.

use alloc::string::String;

use minicbor::Encode;

use crate::ids::Digested;

/// Forget a buyer: his texts go, his digest and what he bought stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuyerErase {
    /// Who.
    pub buyer: Digested,
    /// Why, for the ledger.
    pub reason: String,
}

impl<C> Encode<C> for BuyerErase {
    fn encode<W: minicbor::encode::Write>(
        &self,
        e: &mut minicbor::Encoder<W>,
        _ctx: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        e.map(2)?.u8(0)?.str(&self.buyer.text)?.u8(1)?.str(&self.reason)?.ok()
    }
}
