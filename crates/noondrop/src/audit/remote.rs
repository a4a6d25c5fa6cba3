//! What can be audited of a running server from outside: that it has a position, and that its accounts balance.
//!
//! The chain, the digests and the replay need the rows themselves: that is the audit of the store.

use noondrop_log::PositionRef;
use serde_json::Value;

use crate::cli::Failure;
use crate::client::{Desk, DeskError};

/// What was asked and answered.
#[derive(Clone, Debug, serde::Serialize)]
pub struct RemoteVerdict {
    /// Nothing is wrong.
    pub ok: bool,
    /// The server's newest position.
    pub position: String,
    /// Its whole digest.
    pub digest: String,
    /// Items looked at.
    pub items: u64,
    /// Units in live holds.
    pub held: u64,
    /// Units owned.
    pub sold: u64,
    /// Units beyond their item's total.
    pub oversold: u64,
    /// What is wrong.
    pub findings: Vec<String>,
}

/// Asks a server; the caller needs the role auditor or admin.
pub async fn audit(desk: &mut Desk, expect: Option<PositionRef>) -> Result<RemoteVerdict, Failure> {
    let head = desk.ask("GET", "/v1/ledger/head", "").await?;
    let text = |name: &str| head[name].as_str().unwrap_or_default().to_owned();
    let mut verdict = RemoteVerdict {
        ok: true,
        position: text("position"),
        digest: text("digest"),
        items: 0,
        held: 0,
        sold: 0,
        oversold: 0,
        findings: Vec::new(),
    };
    if let Some(expect) = expect {
        verdict.findings.extend(missing(desk, expect).await?);
    }
    let sales = desk.ask("GET", "/v1/sales", "").await?;
    for sale in sales["sales"].as_array().into_iter().flatten() {
        let name = sale["sale"].as_str().unwrap_or_default();
        let items = desk.ask("GET", &format!("/v1/sales/{name}/items"), "").await?;
        for item in items["items"].as_array().into_iter().flatten() {
            verdict.add(name, item);
        }
    }
    verdict.ok = verdict.findings.is_empty();
    Ok(verdict)
}

/// A server that knows a position waits for it; one that took another way says so.
async fn missing(desk: &mut Desk, expect: PositionRef) -> Result<Option<String>, DeskError> {
    match desk.ask("GET", &format!("/v1/sales?at_least={expect}"), "").await {
        Ok(_) => Ok(None),
        Err(error) if error.status() == Some(412) => Ok(Some(format!(
            "the server's log does not have position {expect}: another history stands in its place"
        ))),
        Err(error) if error.status() == Some(503) => {
            Ok(Some(format!("the server's log ends before position {expect}")))
        }
        Err(error) => Err(error),
    }
}

impl RemoteVerdict {
    fn add(&mut self, sale: &str, item: &Value) {
        let units = |name: &str| item[name].as_u64().unwrap_or_default();
        self.items += 1;
        self.held += units("held");
        self.sold += units("sold");
        self.oversold += units("oversold");
        if !balances(item) {
            let name = item["item"].as_str().unwrap_or_default();
            self.findings.push(format!(
                "{sale}/{name}: available + held + sold + blocked is not total + oversold"
            ));
        }
    }
}

/// `available + held + sold + blocked == total + oversold`, as the server tells it.
#[must_use]
pub fn balances(item: &Value) -> bool {
    let units = |name: &str| item[name].as_u64();
    let sum = |names: &[&str]| names.iter().map(|name| units(name)).sum::<Option<u64>>();
    let left = sum(&["available", "held", "sold", "blocked"]);
    left.is_some() && left == sum(&["total", "oversold"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_account_that_does_not_balance_is_found() {
        let good =
            json!({"available": 1, "held": 2, "sold": 3, "blocked": 0, "total": 6, "oversold": 0});
        assert!(balances(&good));
        let mut lost = good.clone();
        lost["available"] = 0.into();
        assert!(!balances(&lost));
        assert!(!balances(&json!({})));
    }
}
