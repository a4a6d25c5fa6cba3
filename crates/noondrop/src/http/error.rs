//! From refusals and faults to problems: the only mapping. A new refusal does not build until it is here.

use noondrop_core::{
    Act, Catalog, Command, HoldId, ItemIx, LineRefusal, Refusal, SeatLack, StockCode, Timestamp,
};
use noondrop_engine::Fault;
use serde_json::{Value, json};

use super::problem::Problem;
use super::render::{label_text, time_text};

/// What the texts of a refusal need beside it.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Names.
    pub catalog: &'a Catalog,
    /// The time of the answer, for `Retry-After`.
    pub at: Timestamp,
    /// What was asked: a recorded refusal is only ever given to the same command again.
    pub command: &'a Command,
    /// The payment that confirmed the hold, for a second one.
    pub payment_ref: Option<&'a str>,
}

impl Context<'_> {
    fn item(&self, item: ItemIx) -> &str {
        self.catalog.items.get(item.0 as usize).map_or("?", |item| item.name.as_str())
    }

    /// The hold that was acted on: the one in the path, or the one that a new hold is to stand for.
    fn hold(&self) -> Option<HoldId> {
        match &self.command.act {
            Act::HoldCreate(act) => act.supersedes.map(|old| old.hold).or(act.retake),
            Act::HoldConfirm(act) => Some(act.hold),
            Act::HoldExtend(act) => Some(act.hold),
            Act::HoldRelease(act) => Some(act.hold),
            Act::HoldCancel(act) => Some(act.hold),
            Act::ShopPut(_)
            | Act::SalePut(_)
            | Act::SaleMove(_)
            | Act::ItemPut(_)
            | Act::ItemAdjust(_)
            | Act::ItemSeats(_)
            | Act::ItemBlock(_)
            | Act::ItemUnblock(_)
            | Act::BuyerErase(_) => None,
        }
    }

    fn of_hold(&self, code: &str, detail: impl Into<String>) -> Problem {
        Problem::new(code, detail).with("hold", self.hold().map(|hold| hold.to_string()))
    }

    /// The item that a line of the request names.
    fn line_item(&self, line: u8) -> &str {
        let Act::HoldCreate(create) = &self.command.act else { return "" };
        let line = usize::from(line).checked_sub(1).and_then(|at| create.lines.get(at));
        line.map_or("", |line| line.item.as_str())
    }

    fn sale(&self) -> Option<&str> {
        match &self.command.act {
            Act::HoldCreate(act) => Some(act.sale.as_str()),
            Act::SalePut(act) => Some(act.sale.as_str()),
            Act::SaleMove(act) => Some(act.sale.as_str()),
            Act::ItemPut(act) => Some(act.sale.as_str()),
            Act::ItemAdjust(act) => Some(act.sale.as_str()),
            Act::ItemSeats(act) => Some(act.sale.as_str()),
            Act::ItemBlock(act) => Some(act.sale.as_str()),
            Act::ItemUnblock(act) => Some(act.sale.as_str()),
            Act::ShopPut(_)
            | Act::HoldConfirm(_)
            | Act::HoldExtend(_)
            | Act::HoldRelease(_)
            | Act::HoldCancel(_)
            | Act::BuyerErase(_) => None,
        }
    }

    fn shop(&self) -> &str {
        match &self.command.act {
            Act::ShopPut(act) => act.name.as_str(),
            _ => self.command.shop.as_str(),
        }
    }

    fn seconds_until(&self, time: Timestamp) -> u64 {
        time.0.saturating_sub(self.at.0).div_ceil(1_000).max(1)
    }
}

/// A decided "no".
#[must_use]
pub fn refusal_problem(refusal: &Refusal, context: &Context<'_>) -> Problem {
    let code = refusal.code();
    match refusal {
        Refusal::KeyReused => Problem::new(
            code,
            "This idempotency key was used before with another body. Derive keys from the cart, one per attempt.",
        ),
        Refusal::ShopNotFound => {
            Problem::new(code, "There is no such shop.").with("shop", context.shop())
        }
        Refusal::SaleNotFound => Problem::new(code, "There is no such sale in this shop.")
            .with("sale", context.sale()),
        Refusal::SalePaused => {
            Problem::new(code, "The sale is paused. Try again with the same key.").after(5)
        }
        Refusal::SaleNotOpen { opens_at } => sale_not_open(*opens_at, context),
        Refusal::SaleClosed => Problem::new(code, "The sale is closed to new holds."),
        Refusal::SaleArchived => Problem::new(code, "The sale is archived; nothing changes in it."),
        Refusal::ItemNotFound { line, item } => {
            let problem = Problem::new(code, format!("There is no item {item} in this sale."));
            let problem = problem.with("item", item.as_str());
            // Line 0: the path names it.
            match line {
                0 => problem,
                line => problem.with("errors", vec![bad_line(code, *line, item.as_str())]),
            }
        }
        Refusal::SeatNotFound { line, seat } => {
            let problem = Problem::new(code, format!("There is no seat {seat} in this item."));
            let problem = problem.with("seat", seat.as_str());
            // Line 0: no line names it.
            match line {
                0 => problem,
                line => {
                    let mut error = bad_line(code, *line, context.line_item(*line));
                    error["seat"] = seat.as_str().into();
                    problem.with("errors", vec![error])
                }
            }
        }
        Refusal::ItemQuarantined { line, item } => {
            let item = context.item(*item);
            Problem::new(code, format!("The counts of {item} are being checked."))
                .with("errors", vec![bad_line(code, *line, item)])
                .after(5)
        }
        Refusal::ReferenceInUse { hold } => {
            Problem::new(code, format!("The reference belongs to {hold}."))
                .with("hold", hold.to_string())
        }
        Refusal::BuyerHasHold { hold } => {
            let hold = hold.map(|hold| hold.to_string());
            let which = hold.as_deref().unwrap_or("another hold");
            Problem::new(code, format!("The buyer has {which} and may not have more at once."))
                .with("hold", hold)
        }
        Refusal::LimitPerBuyer { limit, limit_max, used } => Problem::new(
            code,
            format!("{limit} allows {limit_max} per buyer; this buyer has {used}."),
        )
        .with("limit", limit.as_str())
        .with("per_buyer", *limit_max)
        .with("used", *used),
        Refusal::Stock { lines, retake } => stock(code, lines, *retake, context),
        Refusal::HoldNotFound => context.of_hold(code, "There is no such hold."),
        Refusal::StaleFence => context.of_hold(
            code,
            "The fence is not this hold's. Read the hold again before acting on it.",
        ),
        Refusal::HoldExpired => context.of_hold(
            code,
            "The hold's time ran out before this request. Its units may have gone to others.",
        ),
        Refusal::HoldReleased { superseded_by } => {
            let by = superseded_by.map(|hold| hold.to_string());
            let detail = by.as_deref().map_or_else(
                || "The hold was released.".to_owned(),
                |by| format!("The hold was replaced by {by}."),
            );
            context.of_hold(code, detail).with("superseded_by", by)
        }
        Refusal::HoldConfirmed => {
            context.of_hold(code, "The hold is confirmed: its units are sold.")
        }
        Refusal::HoldCancelled => context.of_hold(code, "The hold was cancelled."),
        Refusal::ConfirmedWithOtherPayment { .. } => context.of_hold(
            code,
            "The hold was confirmed with another payment: this one is a second charge. Refund it.",
        )
        .with("payment_ref", context.payment_ref.map(str::to_owned)),
        Refusal::UseAdjust { total } => Problem::new(
            code,
            format!("The total is {total} now. A definition sets it once; change it with adjust."),
        )
        .with("total", *total),
        Refusal::VersionMismatch { now } => {
            Problem::new(code, format!("It changed meanwhile: it is at {now} now."))
                .with("now", *now)
        }
        Refusal::InvalidField { field, bound } => Problem::field(field, bound),
        Refusal::BuyerHasLiveHolds { holds } => live_holds(code, *holds),
    }
}

fn live_holds(code: &str, holds: u32) -> Problem {
    let detail = format!("The buyer has {holds} live holds. Release them, or wait until they end.");
    Problem::new(code, detail).with("holds", holds)
}

fn bad_line(code: &str, line: u8, item: &str) -> Value {
    json!({"line": line, "item": item, "code": code})
}

fn sale_not_open(opens_at: Option<Timestamp>, context: &Context<'_>) -> Problem {
    let Some(opens_at) = opens_at else {
        return Problem::new("sale_not_open", "The sale is not open yet.")
            .with("opens_at", Value::Null)
            .after(5);
    };
    let text = time_text(opens_at);
    Problem::new("sale_not_open", format!("The sale opens at {text}."))
        .with("opens_at", text)
        .after(context.seconds_until(opens_at))
}

fn stock(code: &str, lines: &[LineRefusal], retake: bool, context: &Context<'_>) -> Problem {
    let details: Vec<String> = lines.iter().map(|line| line_detail(line, context)).collect();
    let errors: Vec<Value> = lines.iter().map(|line| line_error(line, context)).collect();
    let mut detail = details.join(" ");
    if retake {
        detail = format!("The lapsed hold's units are not free any more. {detail}");
    }
    let problem = Problem::new(code, detail).with("errors", errors);
    match lines.iter().filter_map(|line| line.may_free_at).max() {
        Some(at) if !retake => problem.after(context.seconds_until(at)),
        _ => problem,
    }
}

fn line_detail(line: &LineRefusal, context: &Context<'_>) -> String {
    let item = context.item(line.item);
    let within = line.limited_by.map(|pool| format!(" (limited by {})", context.item(pool)));
    let within = within.unwrap_or_default();
    if let Some(label) = line.from {
        let label = label_text(context.catalog, line.item, label);
        let (asked, there) = (line.requested, line.available);
        return format!(
            "{asked} of {item} are asked for from {label}; {there} are set aside there."
        );
    }
    if line.line == 0 {
        let (asked, there) = (line.requested, line.available);
        return format!("{asked} of {item} are asked for; there are {there}.");
    }
    let asks = format!("Line {} asks for {} of {item}{within}", line.line, line.requested);
    match line.code {
        StockCode::SoldOut => format!("{asks}; all are sold."),
        StockCode::AllHeld => format!("{asks}; none is free, {} are held.", line.held),
        StockCode::NotEnoughFree => {
            format!("{asks}; {} are free, {} are held.", line.available, line.held)
        }
        StockCode::SeatTaken => {
            let seats = line.seats.iter().flatten();
            let seats = seats.map(|lack| format!("{} is {}", lack.seat, lack.standing.as_str()));
            format!("{asks}; {}.", seats.collect::<Vec<_>>().join(", "))
        }
        StockCode::NotTogether => {
            format!("{asks} together; {} such seats are free, but apart.", line.available)
        }
    }
}

fn line_error(line: &LineRefusal, context: &Context<'_>) -> Value {
    let mut error = json!({
        "line": line.line,
        "item": context.item(line.item),
        "code": line.code.as_str(),
        "limited_by": line.limited_by.map(|pool| context.item(pool)),
        "requested": line.requested,
        "available": line.available,
        "held": line.held,
        "most": line.most,
        "may_free_at": line.may_free_at.map(time_text),
        "from": line.from.map(|label| label_text(context.catalog, line.item, label)),
    });
    if let Some(seats) = &line.seats {
        let seat =
            |lack: &SeatLack| json!({"seat": lack.seat.as_str(), "state": lack.standing.as_str()});
        error["seats"] = seats.iter().map(seat).collect();
    }
    error
}

/// No decision.
#[must_use]
pub fn fault_problem(fault: &Fault) -> Problem {
    match fault {
        Fault::Overloaded => Problem::new(
            "overloaded",
            "More waits than can be done in time. Surely not done; send it again with the same key.",
        )
        .after(1),
        Fault::StoreFailing => Problem::new(
            "overloaded",
            "The store does not work at the moment. Surely not done; send it again with the same key.",
        )
        .after(1),
        Fault::Stopping => Problem::new(
            "overloaded",
            "The server is stopping. Surely not done; send it again with the same key.",
        )
        .after(1),
        Fault::OutcomeUnknown => Problem::new(
            "outcome_unknown",
            "It is not known yet whether this was done. The same key tells.",
        )
        .after(1),
        Fault::KeysFull => Problem::new(
            "keys_full",
            "There is no room for a new idempotency key. Surely not done.",
        )
        .after(10),
        Fault::Internal(_) => Problem::new(
            "internal",
            "A bug was met and contained. This request was not done; others were not touched.",
        )
        .after(1),
    }
}
