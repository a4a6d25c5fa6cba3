//! `noondrop explain`: why did this buyer get a ticket, or none? For people who answer buyers.

use std::io::Write;

use clap::Args;
use noondrop_core::{Digest16, HoldId};
use serde_json::{Value, json};

use super::Failure;
use super::store::StoreArguments;
use crate::audit::explain::{Bounds, KeyText, Question, SeatName, Story, Told, explain};
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
    /// The shop of the buyer, the reference, the key or the seat
    #[arg(long, default_value = DEFAULT_SHOP)]
    pub shop: String,
    /// The sale of the seat
    #[arg(long, value_name = "SALE", requires = "seat")]
    pub sale: Option<String>,
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
    /// A seat, after its item; --sale names the sale
    #[arg(long, value_name = "ITEM/SEAT")]
    pub seat: Option<String>,
}

impl Options {
    fn question(&self) -> Result<Question, Failure> {
        let shop = self.shop.clone();
        let What { hold, buyer, reference, key, seat } = self.what.clone();
        if let Some(hold) = hold {
            return Ok(Question::Hold(hold));
        }
        if let Some(buyer) = buyer {
            return Ok(Question::Buyer { shop, buyer });
        }
        if let Some(reference) = reference {
            return Ok(Question::Reference { shop, reference });
        }
        if let Some(seat) = seat {
            let (item, seat) = seat.split_once('/').ok_or("--seat is of the form ITEM/SEAT")?;
            let sale = self.sale.clone().ok_or("--seat needs --sale")?;
            let (item, seat) = (item.to_owned(), seat.to_owned());
            return Ok(Question::Seat(SeatName { shop, sale, item, seat }));
        }
        let key = key.ok_or("name a hold, a buyer, a reference, a key or a seat")?;
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

/// Who asked, at the beginning of a sentence.
fn who(question: &Question) -> String {
    match question {
        Question::Buyer { buyer, .. } => format!("buyer {buyer}"),
        Question::Reference { reference, .. } => format!("the buyer of reference {reference}"),
        Question::Key(text) => format!("the buyer with key {}", text.key),
        Question::KeyHash(hash) => format!("the buyer with key {hash}"),
        Question::Hold(_) | Question::Seat(_) | Question::All => "the buyer".to_owned(),
    }
}

/// Tells the story.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    let mut reader = options.store.reader()?;
    let bounds = Bounds { after: 0, limit: usize::MAX };
    let question = options.question()?;
    let story = explain(&mut *reader, &question, bounds)?;
    if options.json {
        writeln!(out, "{}", value(&story, &who(&question)))?;
        return Ok(());
    }
    tell(&story, &who(&question), out)
}

fn value(story: &Story, who: &str) -> Value {
    let naming = story.naming();
    json!({
        "position": story.glance.position().to_string(),
        "summary": story.summary.as_ref().map(|summary| summary.value(who, naming)),
        "seat": story.seat.as_ref().map(|seat| seat.value(naming)),
        "holds": story.holds.iter().map(|hold| hold.value(naming)).collect::<Vec<_>>(),
        "facts": story.facts.iter().map(Told::to_json).collect::<Vec<_>>(),
    })
}

fn tell(story: &Story, who: &str, out: &mut dyn Write) -> Result<(), Failure> {
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
    let naming = story.naming();
    let summary = story.summary.iter().flat_map(|summary| summary.sentences(who, naming));
    let summary: Vec<String> = summary.map(|sentence| format!("{}.", capital(&sentence))).collect();
    if !summary.is_empty() {
        writeln!(out, "\n{}", summary.join("\n"))?;
    }
    let position = story.glance.position();
    let seat = story.seat.iter().map(|seat| seat.sentence(naming));
    let now: Vec<String> =
        seat.chain(story.holds.iter().map(|hold| hold.sentence(naming))).collect();
    if !now.is_empty() {
        writeln!(out)?;
    }
    for sentence in now {
        writeln!(out, "Now, at {position}: {sentence}.")?;
    }
    Ok(())
}

/// A sentence as it begins. Names keep the case that they have.
fn capital(sentence: &str) -> String {
    let begins = ["buyer ", "the ", "all ", "your ", "some "];
    if !begins.iter().any(|word| sentence.starts_with(word)) {
        return sentence.to_owned();
    }
    let (first, rest) = sentence.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}
