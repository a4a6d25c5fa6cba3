//! What a server has of a sale, as far as a file is compared with it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::blocks::{Aside, BlockUnits};
use super::file::{ItemWanted, SaleFile, Units};
use super::seats::Seat;
use super::teller::{Teller, TellerError};

/// Seats asked for at once.
const SEATS_PAGE: usize = 10_000;
/// Holds asked for at once.
const HOLDS_PAGE: usize = 200;

/// A sale as a server has it.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// The sale as the server tells it; none: there is no such sale.
    pub sale: Option<Value>,
    /// Its items by name.
    pub items: BTreeMap<String, ItemStanding>,
}

/// An item as a server has it.
#[derive(Clone, Debug, Default)]
pub struct ItemStanding {
    /// As the server tells it.
    pub value: Value,
    /// Its seats, where it has some and somebody asked.
    pub seats: Option<Vec<SeatTold>>,
    /// Units that holds took out of its blocks, by label.
    pub taken: BTreeMap<String, u64>,
}

/// A seat as a server tells it.
#[derive(Clone, Debug, Deserialize)]
pub struct SeatTold {
    /// The seat.
    #[serde(flatten)]
    pub seat: Seat,
    /// `free`, `held` …
    pub state: String,
    /// Whether it counts towards the total.
    pub planned: bool,
    /// The label that it is set aside under, or goes back to.
    pub block: Option<String>,
}

impl Standing {
    /// The version of the sale; 0 where there is none.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.sale.as_ref().and_then(|sale| sale["version"].as_u64()).unwrap_or(0)
    }

    /// `draft`, `open` …; none where there is no sale.
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.sale.as_ref().and_then(|sale| sale["state"].as_str())
    }
}

impl ItemStanding {
    /// A number of it.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        self.value[name].as_u64().unwrap_or(0)
    }

    /// Whether it has no units of its own.
    #[must_use]
    pub fn is_view(&self) -> bool {
        self.value["view"].as_bool().unwrap_or(false)
    }

    /// Whether it has seats.
    #[must_use]
    pub fn is_seated(&self) -> bool {
        self.value["seated"].as_bool().unwrap_or(false)
    }

    /// What it counts against.
    #[must_use]
    pub fn counts_against(&self) -> Vec<&str> {
        let others = self.value["counts_against"].as_array();
        others.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Units set aside now, by label.
    #[must_use]
    pub fn blocks(&self) -> BTreeMap<&str, u64> {
        let blocks = self.value["blocks"].as_array().into_iter().flatten();
        blocks
            .filter_map(|block| Some((block["label"].as_str()?, block["quantity"].as_u64()?)))
            .collect()
    }

    /// Units under a label.
    #[must_use]
    pub fn aside(&self, label: &str) -> Aside {
        Aside {
            left: self.blocks().get(label).copied().unwrap_or(0),
            taken: self.taken.get(label).copied().unwrap_or(0),
        }
    }
}

/// The path of a sale.
#[must_use]
pub fn sale_path(sale: &str) -> String {
    format!("/v1/sales/{sale}")
}

/// Asks for all that a file is compared with.
pub async fn read(teller: &mut Teller, file: &SaleFile) -> Result<Standing, TellerError> {
    let path = sale_path(&file.sale);
    let sale = match teller.get(&path).await {
        Ok(sale) => sale,
        Err(TellerError::Refused(refused)) if refused.code() == "sale_not_found" => {
            return Ok(Standing::default());
        }
        Err(error) => return Err(error),
    };
    let mut standing = Standing { sale: Some(sale), items: items(teller, &path).await? };
    for wanted in &file.items {
        let Some(item) = standing.items.get_mut(&wanted.name) else { continue };
        if item.is_seated() && matches!(wanted.units, Units::Seats(_)) {
            item.seats = Some(seats(teller, &format!("{path}/items/{}", wanted.name)).await?);
        }
    }
    if file.items.iter().any(|wanted| asks_for_taken(wanted, &standing)) {
        count_taken(teller, &file.sale, &mut standing).await?;
    }
    Ok(standing)
}

async fn items(
    teller: &mut Teller,
    path: &str,
) -> Result<BTreeMap<String, ItemStanding>, TellerError> {
    let told = teller.get(&format!("{path}/items")).await?;
    let items = told["items"].as_array().into_iter().flatten();
    let named = items.map(|value| {
        let name = value["item"].as_str().unwrap_or_default().to_owned();
        (name, ItemStanding { value: value.clone(), ..ItemStanding::default() })
    });
    Ok(named.collect())
}

async fn seats(teller: &mut Teller, path: &str) -> Result<Vec<SeatTold>, TellerError> {
    #[derive(Deserialize)]
    struct Page {
        seats: Vec<SeatTold>,
        next_after: Option<u32>,
    }
    let (mut seats, mut after) = (Vec::new(), String::new());
    loop {
        let call = format!("{path}/seats?limit={SEATS_PAGE}{after}");
        let page = teller.get(&call).await?;
        let page: Page = serde_json::from_value(page)
            .map_err(|source| TellerError::NotJson { call: format!("GET {call}"), source })?;
        let sorted = page.seats.into_iter();
        seats.extend(sorted.map(|told| SeatTold { seat: told.seat.sorted(), ..told }));
        let Some(next) = page.next_after else { return Ok(seats) };
        after = format!("&after={next}");
    }
}

/// Whether units may have been taken out of a block that is counted.
fn asks_for_taken(wanted: &ItemWanted, standing: &Standing) -> bool {
    let counts = wanted.blocks.iter().any(|block| matches!(block.units, BlockUnits::Quantity(_)));
    let item = standing.items.get(&wanted.name);
    counts
        && item
            .is_some_and(|item| !item.is_seated() && item.number("held") + item.number("sold") > 0)
}

/// Goes through the holds that have units and counts those out of blocks: no other answer tells.
async fn count_taken(
    teller: &mut Teller,
    sale: &str,
    standing: &mut Standing,
) -> Result<(), TellerError> {
    let mut seen = BTreeSet::new();
    for state in ["active", "confirmed"] {
        let mut before = String::new();
        loop {
            let path = format!("/v1/holds?sale={sale}&state={state}&limit={HOLDS_PAGE}{before}");
            let page = teller.get(&path).await?;
            for hold in page["holds"].as_array().into_iter().flatten() {
                // One that was confirmed in between is in both lists.
                if seen.insert(hold["id"].as_str().unwrap_or_default().to_owned()) {
                    standing.count(hold);
                }
            }
            let Some(next) = page["next_before"].as_str() else { break };
            before = format!("&before={next}");
        }
    }
    Ok(())
}

impl Standing {
    fn count(&mut self, hold: &Value) {
        for line in hold["lines"].as_array().into_iter().flatten() {
            let units = |name: &str| line[name].as_u64().unwrap_or(0);
            let (item, from) = (line["item"].as_str(), line["from"].as_str());
            let (Some(item), Some(label)) = (item, from) else { continue };
            let pool = self.pool_of(item).to_owned();
            if let Some(item) = self.items.get_mut(&pool) {
                *item.taken.entry(label.to_owned()).or_default() += units("held") + units("sold");
            }
        }
    }

    /// A block lies in an item's own units or, where it has none, in those of the first that it counts against.
    fn pool_of<'a>(&'a self, item: &'a str) -> &'a str {
        let mut pool = item;
        while let Some(view) = self.items.get(pool).filter(|item| item.is_view()) {
            let Some(first) = view.counts_against().first().copied() else { break };
            pool = first;
        }
        pool
    }
}

/// The terms that a sale has, by their wire names.
#[must_use]
pub fn terms(sale: &Value) -> Map<String, Value> {
    sale.as_object().cloned().unwrap_or_default()
}
