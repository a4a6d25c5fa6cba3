//! Facts as people and programs read them: JSON with names instead of numbers, without what is secret.

use noondrop_core::seats::SeatNo;
use noondrop_core::{
    ActorIx, CancelTo, Catalog, Draw, Entry, Fact, HoldNo, HoldTouched, ItemIx, KeyUse, LabelIx,
    LineMoved, Refusal, SaleIx, SeatOut, Seq,
};
use serde_json::{Value, json};

use crate::http::render::time_text;

/// How holds are shown, and which part of a fact about many of them.
pub trait Sight {
    /// What stands for a hold.
    fn hold(&self, hold: HoldNo) -> Value;

    /// Whether a lapsed hold is shown among the others of its fact.
    fn lapse(&self, _: HoldNo) -> bool {
        true
    }

    /// Whether it is shown what lapsed holds gave back to a pool.
    fn pool(&self, _: ItemIx) -> bool {
        true
    }
}

/// Everything, with the log's own numbers of holds: for who reads the store itself.
#[derive(Clone, Copy, Debug)]
pub struct Whole;

impl Sight for Whole {
    fn hold(&self, hold: HoldNo) -> Value {
        hold.0.into()
    }
}

/// Numbers to names.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    /// Of shops, sales, items and principals.
    pub catalog: &'a Catalog,
    /// Of holds.
    pub sight: &'a dyn Sight,
}

impl Names<'_> {
    fn sale(self, sale: SaleIx) -> Value {
        self.catalog
            .sales
            .get(sale.0 as usize)
            .map_or(Value::Null, |sale| sale.name.as_str().into())
    }

    fn item(self, item: ItemIx) -> Value {
        self.catalog
            .items
            .get(item.0 as usize)
            .map_or(Value::Null, |item| item.name.as_str().into())
    }

    fn seats(self, item: ItemIx, seats: &[SeatNo]) -> Value {
        let names = self.catalog.seats.get(&item);
        seats.iter().map(|seat| names.and_then(|names| names.get(*seat))).collect()
    }

    fn seats_out(self, seats: Option<&[SeatOut]>) -> Value {
        let name = |out: &SeatOut| {
            let names = self.catalog.seats.get(&out.item);
            names.and_then(|names| names.get(out.seat))
        };
        seats.map_or(Value::Null, |seats| seats.iter().map(name).collect())
    }

    fn actor(self, actor: ActorIx) -> Value {
        match actor {
            ActorIx::SYSTEM => "the clock".into(),
            ActorIx::BUYER => "the buyer".into(),
            ActorIx(number) => {
                let known = self.catalog.actors.get((number - ActorIx::FIRST) as usize);
                known.map_or(Value::Null, |(name, role)| {
                    format!("{} ({})", name.as_str(), role.as_str()).into()
                })
            }
        }
    }

    fn draw(self, draw: Draw) -> Value {
        json!({"item": self.item(draw.pool), "quantity": draw.quantity})
    }

    fn draws(self, draws: &[Draw]) -> Value {
        let draw = |draw: &Draw| {
            let value = json!({"item": self.item(draw.pool), "quantity": draw.quantity});
            self.with_label(value, draw.pool, draw.label)
        };
        draws.iter().map(draw).collect()
    }

    /// A value with the label of a block, where one is meant.
    fn with_label(self, value: Value, item: ItemIx, label: Option<LabelIx>) -> Value {
        match label {
            None => value,
            Some(label) => joined(value, json!({"label": self.label(item, label)})),
        }
    }

    fn label(self, item: ItemIx, label: LabelIx) -> Value {
        let item = self.catalog.items.get(item.0 as usize);
        let sale = item.and_then(|item| self.catalog.sales.get(item.sale.0 as usize));
        let label = sale.and_then(|sale| sale.labels.get(usize::from(label.0)));
        label.map_or(Value::Null, |label| label.as_str().into())
    }

    fn touched(self, touched: &HoldTouched) -> Value {
        json!({
            "hold": self.sight.hold(touched.hold),
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
                let taken = line.seats.iter().flatten();
                let taken: Vec<Value> = taken
                    .map(
                        |lack| json!({"seat": lack.seat.as_str(), "state": lack.standing.as_str()}),
                    )
                    .collect();
                json!({
                    "line": line.line,
                    "seats": taken,
                    "item": self.item(line.item),
                    "code": line.code.as_str(),
                    "requested": line.requested,
                    "available": line.available,
                    "held": line.held,
                    "most": line.most,
                    "limited_by": line.limited_by.map(|pool| self.item(pool)),
                    "from": line.from.map(|label| self.label(line.item, label)),
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
            "draws": item.draws.iter().map(|pool| names.item(*pool)).collect::<Value>(),
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
        Fact::SeatsChanged(seats) => json!({
            "item": names.item(seats.item),
            "added": seats.added.iter().map(|seat| seat.name.as_str()).collect::<Vec<_>>(),
            "planned_again": names.seats(seats.item, &seats.planned),
            "removed": names.seats(seats.item, &seats.removed),
            "total": seats.total,
            "by": names.actor(seats.by),
            "key": key(seats.key),
        }),
        Fact::ItemBlocked(moved) | Fact::ItemUnblocked(moved) => json!({
            "item": names.item(moved.item),
            "label": moved.label.as_str(),
            "quantity": moved.quantity,
            "blocked": moved.blocked,
            "seats": moved.seats.as_ref().map(|seats| names.seats(moved.item, seats)),
            "by": names.actor(moved.by),
            "key": key(moved.key),
        }),
        Fact::BlockRefused(refused) => json!({
            "item": names.item(refused.item),
            "label": refused.label.as_str(),
            "quantity": refused.quantity,
            "operation": format!("{:?}", refused.operation).to_lowercase(),
            "refusal": names.refusal(&refused.refusal),
            "by": names.actor(refused.by),
            "key": key(refused.key),
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
                    let mut value = json!({
                        "item": names.item(line.item),
                        "quantity": line.quantity,
                        "draws": names.draws(&line.draws),
                    });
                    if let Some(seats) = &line.seats {
                        value["seats"] = names.seats(line.item, seats);
                    }
                    value
                })
                .collect();
            let overridden = hold.overridden.iter().flatten();
            let overridden: Vec<&str> = overridden.map(|code| code.as_str()).collect();
            json!({
                "hold": names.sight.hold(hold.hold),
                "sale": names.sale(hold.sale),
                "by": names.actor(hold.by),
                "buyer": hold.buyer.to_string(),
                "reference": hold.reference.map(|reference| reference.to_string()),
                "ttl_seconds": hold.ttl_seconds,
                "overridden": overridden,
                "supersedes": hold.supersedes.map(|old| names.sight.hold(old.hold)),
                "retakes": hold.retakes.map(|old| names.sight.hold(old)),
                "lines": lines,
                "key": key(hold.key),
            })
        }
        Fact::HoldRefused(lost) => {
            let lines: Vec<Value> = lost
                .lines
                .iter()
                .map(|line| {
                    let mut value =
                        json!({"item": names.item(line.item), "quantity": line.quantity});
                    if let Some(seats) = &line.seats {
                        value["seats"] = names.seats(line.item, seats);
                    }
                    names.with_label(value, line.item, line.from)
                })
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
        Fact::BuyerErased(erased) => json!({
            "buyer": erased.buyer.to_string(),
            "holds": erased.holds,
            "by": names.actor(erased.by),
        }),
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
                "superseded_by": fact.superseded_by.map(|no| names.sight.hold(no)),
                "seats": names.seats_out(fact.seats.as_deref()),
            }),
        ),
        Fact::HoldsExpired(fact) => {
            let holds = fact.holds().map(|(no, _)| no).filter(|no| names.sight.lapse(*no));
            let holds: Vec<Value> = holds.map(|no| names.sight.hold(no)).collect();
            let moves = fact.moves.iter().filter(|draw| names.sight.pool(draw.pool));
            let moves: Vec<Value> = moves.map(|draw| names.draw(*draw)).collect();
            json!({"holds": holds, "moves": moves})
        }
        Fact::HoldCancelled(fact) => joined(
            names.touched(&fact.touched),
            json!({
                "lines": parts(&fact.lines),
                "moves": names.draws(&fact.moves),
                "to": match &fact.to {
                    CancelTo::Stock => json!("stock"),
                    CancelTo::Destroyed => json!("destroyed"),
                    CancelTo::Block(label) => json!(label.as_str()),
                },
                "seats": names.seats_out(fact.seats.as_deref()),
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

/// The key that a fact came of.
#[must_use]
pub fn key_of(fact: &Fact) -> Option<KeyUse> {
    match fact {
        Fact::HoldCreated(fact) => fact.key,
        Fact::HoldRefused(fact) => fact.key,
        Fact::ItemAdjusted(fact) => fact.key,
        Fact::SeatsChanged(fact) => fact.key,
        Fact::ItemBlocked(fact) | Fact::ItemUnblocked(fact) => fact.key,
        Fact::BlockRefused(fact) => fact.key,
        other => touched(other).and_then(|touched| touched.key),
    }
}

/// What happened to one hold that was there before.
#[must_use]
pub fn touched(fact: &Fact) -> Option<&HoldTouched> {
    fact.touched()
}

/// Every hold that a fact names.
#[must_use]
pub fn holds_of(fact: &Fact) -> Vec<HoldNo> {
    match fact {
        Fact::HoldCreated(fact) => {
            let old = fact.supersedes.map(|old| old.hold);
            [Some(fact.hold), old, fact.retakes].into_iter().flatten().collect()
        }
        Fact::HoldReleased(fact) => {
            [Some(fact.touched.hold), fact.superseded_by].into_iter().flatten().collect()
        }
        Fact::HoldsExpired(fact) => fact.holds().map(|(no, _)| no).collect(),
        other => touched(other).map(|touched| touched.hold).into_iter().collect(),
    }
}

/// Whether a fact is about a hold, as the one that it made or that it changed or refused.
#[must_use]
pub fn is_about(fact: &Fact, hold: HoldNo) -> bool {
    match fact {
        Fact::HoldCreated(fact) => fact.hold == hold,
        Fact::HoldsExpired(fact) => fact.holds().any(|(no, _)| no == hold),
        other => touched(other).is_some_and(|touched| touched.hold == hold),
    }
}

/// The hold's own facts in a row, and the row of the one before them.
#[must_use]
pub fn about_hold(entries: &[Entry], hold: HoldNo) -> (Vec<&Entry>, Option<Seq>) {
    let about: Vec<&Entry> = entries.iter().filter(|e| is_about(&e.fact, hold)).collect();
    let before = about.iter().find_map(|entry| match &entry.fact {
        Fact::HoldsExpired(fact) => {
            fact.holds().find(|(no, _)| *no == hold).map(|(_, previous)| previous)
        }
        other => touched(other).map(|touched| touched.previous),
    });
    (about, before)
}
