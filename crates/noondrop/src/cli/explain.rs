//! `noondrop explain`: why did this buyer get a ticket, or none? For people who answer buyers.

use std::io::Write;

use clap::Args;
use noondrop_core::{Digest16, HoldId};
use serde_json::json;

use super::Failure;
use super::store::StoreArguments;
use crate::audit::explain::{
    Bounds, KeyText, Question, Story, Told, explain, standing, standing_value,
};
use crate::audit::replay::Naming;
use crate::config::DEFAULT_SHOP;
use crate::http::render::time_text;

/// Options of `explain`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The store.
    #[command(flatten)]
    pub store: StoreArguments,
    /// What to explain.
    #[command(flatten)]
    pub what: What,
    /// The shop of the buyer, the reference or the key
    #[arg(long, default_value = DEFAULT_SHOP)]
    pub shop: String,
    /// Who sent the key [default: any principal that ever acted]
    #[arg(long, value_name = "NAME", requires = "key")]
    pub principal: Option<String>,
    /// What the key was sent for
    #[arg(long, value_name = "NAME", requires = "key", default_value = "holds.create")]
    pub operation: String,
    /// The hold in the path that the key was sent to, if there was one
    #[arg(long, value_name = "ID", requires = "key", default_value = "")]
    pub target: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// By what.
#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = false)]
pub struct What {
    /// A hold id
    #[arg(long, value_name = "ID")]
    pub hold: Option<HoldId>,
    /// A buyer, as the shop names him
    #[arg(long, value_name = "ID")]
    pub buyer: Option<String>,
    /// A cart or order number of the shop
    #[arg(long)]
    pub reference: Option<String>,
    /// An idempotency key, as it was sent, or as the ledger shows it (32 hexadecimal digits)
    #[arg(long)]
    pub key: Option<String>,
}

impl Options {
    fn question(&self) -> Result<Question, Failure> {
        let shop = self.shop.clone();
        let What { hold, buyer, reference, key } = self.what.clone();
        if let Some(hold) = hold {
            return Ok(Question::Hold(hold));
        }
        if let Some(buyer) = buyer {
            return Ok(Question::Buyer { shop, buyer });
        }
        if let Some(reference) = reference {
            return Ok(Question::Reference { shop, reference });
        }
        let key = key.ok_or("name a hold, a buyer, a reference or a key")?;
        Ok(match key_hash(&key) {
            Some(hash) => Question::KeyHash(hash),
            None => Question::Key(KeyText {
                shop,
                principal: self.principal.clone(),
                operation: self.operation.clone(),
                target: self.target.clone(),
                key,
            }),
        })
    }
}

/// A key as the ledger shows it.
fn key_hash(text: &str) -> Option<Digest16> {
    let bytes = data_encoding::HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?;
    bytes.try_into().ok().map(Digest16)
}

/// Tells the story.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    let mut reader = options.store.reader()?;
    let bounds = Bounds { after: 0, limit: usize::MAX };
    let mut story = explain(&mut *reader, &options.question()?, bounds)?;
    if options.json {
        let facts: Vec<_> = story.facts.iter().map(Told::to_json).collect();
        let holds: Vec<_> = story.holds.iter().map(standing_value).collect();
        let position = story.replay.position().to_string();
        writeln!(out, "{}", json!({"position": position, "holds": holds, "facts": facts}))?;
    } else {
        tell(&mut story, out)?;
    }
    Ok(())
}

fn tell(story: &mut Story, out: &mut dyn Write) -> Result<(), Failure> {
    if story.facts.is_empty() {
        writeln!(
            out,
            "The log says nothing about this. An attempt that did not compete is not recorded:"
        )?;
        writeln!(out, "the sale was not open, the request was malformed, or it never came.")?;
        return Ok(());
    }
    for fact in &story.facts {
        writeln!(out, "{}  {}", time_text(fact.at), fact.position)?;
        writeln!(out, "    {}.", fact.sentence)?;
    }
    let catalog = story.replay.catalog();
    let naming = Naming { catalog: &catalog, state: story.replay.state() };
    if !story.holds.is_empty() {
        writeln!(out)?;
    }
    for hold in &story.holds {
        writeln!(out, "Now, at {}: {}.", story.replay.position(), standing(hold, naming))?;
    }
    Ok(())
}
