//! Facts as people and programs read them: JSON with names instead of numbers, without what is secret.

use noondrop_core::{
    ActorIx, Catalog, Draw, Entry, Fact, HoldNo, HoldTouched, ItemIx, KeyUse, LineMoved, Refusal,
    SaleIx, Seq,
};
use serde_json::{Value, json};

use crate::http::render::time_text;

/// Numbers to names.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a>(pub &'a Catalog);

impl Names<'_> {
    fn sale(self, sale: SaleIx) -> Value {
        self.0.sales.get(sale.0 as usize).map_or(Value::Null, |sale| sale.name.as_str().into())
    }

    fn item(self, item: ItemIx) -> Value {
        self.0.items.get(item.0 as usize).map_or(Value::Null, |item| item.name.as_str().into())
    }

    fn actor(self, actor: ActorIx) -> Value {
        match actor {
            ActorIx::SYSTEM => "the clock".into(),
            ActorIx::BUYER => "the buyer".into(),
            ActorIx(number) => {
                let known = self.0.actors.get((number - ActorIx::FIRST) as usize);
                known.map_or(Value::Null, |(name, role)| {
                    format!("{} ({})", name.as_str(), role.as_str()).into()
                })
            }
        }
    }

    fn draws(self, draws: &[Draw]) -> Value {
        draws.iter().map(|d| json!({"item": self.item(d.pool), "quantity": d.quantity})).collect()
    }

    fn touched(self, touched: &HoldTouched) -> Value {
        json!({
            "hold": touched.hold.0,
            "previous": touched.previous.0,
            "by": self.actor(touched.by),
            "key": key(touched.key),
        })
    }

    fn refusal(self, refusal: &Refusal) -> Value {
        let lines = match refusal {
            Refusal::Stock { lines, .. } => lines.as_slice(),
            _ => &[],
        };
        let lines: Vec<Value> = lines
            .iter()
            .map(|line| {
                json!({
                    "line": line.line,
                    "item": self.item(line.item),
                    "code": line.code.as_str(),
                    "requested": line.requested,
                    "available": line.available,
                    "held": line.held,
                    "most": line.most,
                })
            })
            .collect();
        json!({"code": refusal.code(), "lines": lines})
    }
}

fn key(key: Option<KeyUse>) -> Value {
    key.map_or(Value::Null, |key| key.hash.to_string().into())
}

fn parts(lines: &[LineMoved]) -> Value {
    lines.iter().map(|part| json!({"line": part.line, "quantity": part.quantity})).collect()
}

/// A value with the members of another.
fn joined(mut value: Value, more: Value) -> Value {
    if let (Value::Object(members), Value::Object(more)) = (&mut value, more) {
        members.extend(more);
    }
    value
}

/// One fact of a row.
#[must_use]
pub fn fact_value(entry: &Entry, names: Names<'_>) -> Value {
    let what = definition(&entry.fact, names)
        .or_else(|| attempt(&entry.fact, names))
        .unwrap_or_else(|| change(&entry.fact, names));
    let mut value = joined(json!({"kind": entry.fact.kind()}), what);
    if let (Some(texts), Value::Object(members)) = (&entry.private, &mut value) {
        let texts = [
            ("buyer_text", &texts.buyer),
            ("reference_text", &texts.reference),
            ("payment_ref", &texts.payment_ref),
            ("reason", &texts.reason),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                members.insert(name.into(), text.as_str().into());
            }
        }
    }
    value
}

fn definition(fact: &Fact, names: Names<'_>) -> Option<Value> {
    Some(match fact {
        // The log's secret is in this fact; it is never shown.
        Fact::LogStarted(started) => {
            json!({"log": started.log_id.to_string(), "level": started.level})
        }
        Fact::SettingsChanged(settings) => json!({
            "success_key_hours": settings.success_key_hours,
            "refusal_key_seconds": settings.refusal_key_seconds,
            "keys_max": settings.keys_max,
        }),
        Fact::ShopDefined(shop) => {
            json!({"shop": shop.name.as_str(), "live": shop.live, "by": names.actor(shop.by)})
        }
        Fact::ActorSeen(actor) => json!({
            "name": actor.name.as_str(),
            "role": actor.role.as_str(),
            "shop": actor.shop.as_str(),
        }),
        Fact::SaleDefined(sale) => json!({
            "sale": sale.name.as_str(),
            "version": sale.version,
            "by": names.actor(sale.by),
        }),
        Fact::SaleMoved(moved) => json!({
            "sale": names.sale(moved.sale),
            "state": moved.state.as_str(),
            "by": names.actor(moved.by),
        }),
        Fact::ItemDefined(item) => json!({
            "sale": names.sale(item.sale),
            "item": item.name.as_str(),
            "total": item.total,
            "oversell_limit": item.oversell_limit,
            "version": item.version,
            "by": names.actor(item.by),
        }),
        Fact::ItemAdjusted(item) => json!({
            "item": names.item(item.item),
            "by_units": item.by_units,
            "total": item.total,
            "by": names.actor(item.by),
            "key": key(item.key),
        }),
        _ => return None,
    })
}

fn attempt(fact: &Fact, names: Names<'_>) -> Option<Value> {
    Some(match fact {
        Fact::HoldCreated(hold) => {
            let lines: Vec<Value> = hold
                .lines
                .iter()
                .map(|line| {
                    json!({
                        "item": names.item(line.item),
                        "quantity": line.quantity,
                        "draws": names.draws(&line.draws),
                    })
                })
                .collect();
            json!({
                "hold": hold.hold.0,
                "sale": names.sale(hold.sale),
                "by": names.actor(hold.by),
                "buyer": hold.buyer.to_string(),
                "reference": hold.reference.map(|reference| reference.to_string()),
                "ttl_seconds": hold.ttl_seconds,
                "supersedes": hold.supersedes.map(|old| old.hold.0),
                "retakes": hold.retakes.map(|old| old.0),
                "lines": lines,
                "key": key(hold.key),
            })
        }
        Fact::HoldRefused(lost) => {
            let lines: Vec<Value> = lost
                .lines
                .iter()
                .map(|line| json!({"item": names.item(line.item), "quantity": line.quantity}))
                .collect();
            json!({
                "sale": names.sale(lost.sale),
                "by": names.actor(lost.by),
                "buyer": lost.buyer.to_string(),
                "reference": lost.reference.map(|reference| reference.to_string()),
                "lines": lines,
                "refusal": names.refusal(&lost.refusal),
                "key": key(lost.key),
            })
        }
        Fact::KeyRepeated(repeated) => {
            json!({"key": repeated.key.to_string(), "count": repeated.count})
        }
        Fact::LossAccepted(loss) => {
            json!({"acknowledged": loss.acknowledged.0, "found": loss.found.0})
        }
        Fact::LogRestored(restored) => json!({"after": restored.after.0}),
        _ => return None,
    })
}

fn change(fact: &Fact, names: Names<'_>) -> Value {
    match fact {
        Fact::HoldConfirmed(fact) => joined(
            names.touched(&fact.touched),
            json!({"payment": fact.payment.to_string(), "moves": names.draws(&fact.moves)}),
        ),
        Fact::HoldConfirmedAgain(touched) => names.touched(touched),
        Fact::HoldExtended(fact) => joined(
            names.touched(&fact.touched),
            json!({"expires_at": time_text(fact.expires_at), "counted": fact.counted}),
        ),
        Fact::HoldReleased(fact) => joined(
            names.touched(&fact.touched),
            json!({
                "lines": parts(&fact.lines),
                "moves": names.draws(&fact.moves),
                "superseded_by": fact.superseded_by.map(|no| no.0),
            }),
        ),
        Fact::HoldsExpired(fact) => {
            let holds: Vec<u64> = fact.holds().map(|(no, _)| no.0).collect();
            json!({"holds": holds, "moves": names.draws(&fact.moves)})
        }
        Fact::HoldCancelled(fact) => joined(
            names.touched(&fact.touched),
            json!({
                "lines": parts(&fact.lines),
                "moves": names.draws(&fact.moves),
                "to": match fact.to {
                    noondrop_core::CancelTo::Stock => "stock",
                    noondrop_core::CancelTo::Destroyed => "destroyed",
                },
            }),
        ),
        Fact::HoldActRefused(fact) => joined(
            names.touched(&fact.touched),
            json!({
                "operation": format!("{:?}", fact.operation).to_lowercase(),
                "refusal": names.refusal(&fact.refusal),
            }),
        ),
        _ => json!({}),
    }
}

/// The hold's own facts in a row, and the row of the one before them.
#[must_use]
pub fn about_hold(entries: &[Entry], hold: HoldNo) -> (Vec<&Entry>, Option<Seq>) {
    let mut before = None;
    let mut about = Vec::new();
    for entry in entries {
        let touched = match &entry.fact {
            Fact::HoldCreated(fact) if fact.hold == hold => None,
            Fact::HoldConfirmed(fact) if fact.touched.hold == hold => Some(fact.touched.previous),
            Fact::HoldConfirmedAgain(touched) if touched.hold == hold => Some(touched.previous),
            Fact::HoldExtended(fact) if fact.touched.hold == hold => Some(fact.touched.previous),
            Fact::HoldReleased(fact) if fact.touched.hold == hold => Some(fact.touched.previous),
            Fact::HoldCancelled(fact) if fact.touched.hold == hold => Some(fact.touched.previous),
            Fact::HoldActRefused(fact) if fact.touched.hold == hold => Some(fact.touched.previous),
            Fact::HoldsExpired(fact) => match fact.holds().find(|(no, _)| *no == hold) {
                Some((_, previous)) => Some(previous),
                None => continue,
            },
            _ => continue,
        };
        before = before.or(touched);
        about.push(entry);
    }
    (about, before)
}
