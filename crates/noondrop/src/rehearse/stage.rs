//! The sale that is rehearsed: put on offer before, looked at after.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use noondrop_core::HoldId;
use serde::Deserialize;
use serde_json::Value;

use super::Plan;
use super::verify::Standing;
use crate::cli::Failure;
use crate::client::Desk;
use crate::http::render::time_text;
use crate::time::steady;

/// What is on sale.
pub const ITEM: &str = "ticket";
/// How long before the opening the crowd gathers.
const OPENS_IN: Duration = Duration::from_secs(2);

/// A sale that opens soon.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The server.
    pub address: SocketAddr,
    /// An admin's secret.
    pub token: String,
    /// The sale's name.
    pub sale: String,
    /// When it opens, on our steady clock.
    pub opens: Instant,
    /// How many come.
    pub buyers: u32,
}

/// Refuses a shop that sells for real. The shop is the credential's own.
pub async fn refuse_live(desk: &mut Desk, shop: &str) -> Result<(), Failure> {
    let shop = desk.ask("GET", &format!("/v1/shops/{shop}"), "").await?;
    match shop["live"].as_bool() {
        Some(false) => Ok(()),
        Some(true) => Err("the shop is live: rehearse on a staging system".into()),
        None => Err("the target does not say whether its shop is live".into()),
    }
}

impl Stage {
    /// Puts the tickets on sale. The opening is a moment of the server's clock, whatever ours says.
    pub async fn set(plan: &Plan, address: SocketAddr, token: &str) -> Result<Self, Failure> {
        let mut desk = Desk::new(address, token);
        let ready = desk.ask("GET", "/readyz?verbose=1", "").await?;
        let (asked, now) = (steady(), server_now_ms(&ready)?);
        let opens_at = noondrop_core::Timestamp(now + u64::try_from(OPENS_IN.as_millis())?);
        let sale = format!("rehearsal-{}-{now}", plan.seed);
        let ttl = plan.hold_ttl_seconds;
        let terms = serde_json::json!({
            "title": "A dress rehearsal",
            "opens_at": time_text(opens_at),
            "hold_seconds": ttl,
            "hold_seconds_max": ttl,
            "live_holds_per_buyer": 1,
            "limits": [{"name": "one-each", "per_buyer": 1}],
        });
        let item = serde_json::json!({"total": plan.tickets});
        desk.ask("PUT", &format!("/v1/sales/{sale}"), &terms.to_string()).await?;
        desk.ask("PUT", &format!("/v1/sales/{sale}/items/{ITEM}"), &item.to_string()).await?;
        desk.ask("POST", &format!("/v1/sales/{sale}/publish"), "").await?;
        let opens = asked + OPENS_IN;
        Ok(Self { address, token: token.to_owned(), sale, opens, buyers: plan.buyers })
    }

    /// Where the item is.
    #[must_use]
    pub fn item_path(&self) -> String {
        format!("/v1/sales/{}/items/{ITEM}", self.sale)
    }

    /// Waits until what was abandoned has come back; then the item, as the server tells it.
    pub async fn settled(&self, within: Duration) -> Result<Value, Failure> {
        let mut desk = Desk::new(self.address, &self.token);
        let until = steady() + within;
        loop {
            let item = desk.ask("GET", &self.item_path(), "").await?;
            if item["held"] == 0 || steady() >= until {
                return Ok(item);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Every hold of the sale, as the server tells it, page by page.
    pub async fn holds(&self) -> Result<HashMap<HoldId, Standing>, Failure> {
        let mut desk = Desk::new(self.address, &self.token);
        let mut holds = HashMap::new();
        let mut before = None::<String>;
        loop {
            let from =
                before.as_ref().map(|before| format!("&before={before}")).unwrap_or_default();
            let path = format!("/v1/holds?sale={}&limit=200{from}", self.sale);
            let body = desk.ask_bytes("GET", &path, "").await?;
            let page: Page<'_> = serde_json::from_slice(&body)?;
            for hold in page.holds {
                let id = hold.id.parse().map_err(|_| format!("{} is no hold id", hold.id))?;
                let buyer = hold.buyer.to_owned();
                let standing = Standing { buyer, sold: hold.state == "confirmed", payment: None };
                holds.insert(id, standing);
            }
            match page.next_before {
                Some(next) => before = Some(next.to_owned()),
                None => return Ok(holds),
            }
        }
    }

    /// Takes the sale off: nobody buys in it after the rehearsal.
    pub async fn close(&self) -> Result<(), Failure> {
        let mut desk = Desk::new(self.address, &self.token);
        desk.ask("POST", &format!("/v1/sales/{}/close", self.sale), "").await?;
        Ok(())
    }
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    holds: Vec<Hold<'a>>,
    next_before: Option<&'a str>,
}

#[derive(Deserialize)]
struct Hold<'a> {
    id: &'a str,
    buyer: &'a str,
    state: &'a str,
}

fn server_now_ms(ready: &Value) -> Result<u64, Failure> {
    let now = ready["now"].as_str().and_then(|now| now.parse::<jiff::Timestamp>().ok());
    let ms = now.and_then(|now| u64::try_from(now.as_millisecond()).ok());
    ms.ok_or_else(|| "the server does not say what time it is".into())
}
