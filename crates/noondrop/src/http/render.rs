//! From outcomes to bodies. A body is a pure function of the outcome, the names and the private texts (RULES R7):
//! it holds only absolute times; what moves is in headers.

use jiff::fmt::temporal::DateTimePrinter;
use noondrop_core::{
    Catalog, Counts, ErasedView, HoldTexts, HoldView, ItemIx, ItemView, LabelIx, Name, SaleView,
    SeatKept, SeatOfHold, ShopView, Timestamp,
};
use serde_json::{Value, json};

static TIMES: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

/// RFC 3339, UTC, milliseconds.
#[must_use]
pub fn time_text(time: Timestamp) -> String {
    let mut text = String::with_capacity(24);
    write_time(time, &mut text);
    text
}

fn write_time(time: Timestamp, into: &mut String) {
    // Past the year 9999 the last one that has a name.
    let ms = i64::try_from(time.0).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX);
    TIMES.print_timestamp(&time, into).expect("writing to a string cannot fail");
}

/// The texts of a hold, wherever they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Texts<'a> {
    /// For whom.
    pub buyer: &'a str,
    /// The shop's cart or order number.
    pub reference: Option<&'a str>,
    /// JSON text.
    pub metadata: Option<&'a str>,
}

impl<'a> From<&'a HoldTexts> for Texts<'a> {
    fn from(texts: &'a HoldTexts) -> Self {
        Self {
            buyer: &texts.buyer,
            reference: texts.reference.as_deref(),
            metadata: texts.metadata.as_deref(),
        }
    }
}

/// Writes JSON by hand: the hold is the hot body.
struct Json(String);

impl Json {
    fn raw(&mut self, text: &str) -> &mut Self {
        self.0.push_str(text);
        self
    }

    fn string(&mut self, text: &str) -> &mut Self {
        // Names, ids and most texts need no escaping.
        if text.bytes().all(|b| (0x20..0x7f).contains(&b) && b != b'"' && b != b'\\') {
            self.raw("\"").raw(text).raw("\"")
        } else {
            let quoted = serde_json::to_string(text).expect("a string is always JSON");
            self.raw(&quoted)
        }
    }

    fn optional(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.string(text),
            None => self.raw("null"),
        }
    }

    fn number(&mut self, number: impl std::fmt::Display) -> &mut Self {
        use std::fmt::Write;
        write!(self.0, "{number}").expect("writing to a string cannot fail");
        self
    }

    fn time(&mut self, time: Timestamp) -> &mut Self {
        self.raw("\"");
        write_time(time, &mut self.0);
        self.raw("\"")
    }

    /// The seats of a line, if it has some. Those that it does not have any more say why.
    fn seats<'a>(&mut self, seats: impl Iterator<Item = &'a SeatOfHold>) {
        let mut some = false;
        for seat in seats {
            self.raw(if some { "," } else { ",\"seats\":[" });
            some = true;
            self.raw("{\"seat\":").string(seat.name.as_str());
            let gone = match seat.kept {
                SeatKept::Kept => None,
                SeatKept::Released => Some("released"),
                SeatKept::Cancelled => Some("cancelled"),
                SeatKept::Lapsed => Some("expired"),
            };
            if let Some(gone) = gone {
                self.raw(",\"gone\":").string(gone);
            }
            self.raw("}");
        }
        if some {
            self.raw("]");
        }
    }

    fn bool(&mut self, yes: bool) -> &mut Self {
        self.raw(if yes { "true" } else { "false" })
    }
}

/// A hold.
#[must_use]
pub fn hold_body(view: &HoldView, texts: Texts<'_>, catalog: &Catalog) -> String {
    let shop = catalog.shops.get(view.shop.0 as usize).map_or("", |shop| shop.name.as_str());
    let sale = catalog.sales.get(view.sale.0 as usize).map_or("", |sale| sale.name.as_str());
    let mut json = Json(String::with_capacity(512));
    json.raw("{\"id\":\"").number(view.id).raw("\",\"fence\":").number(view.fence);
    json.raw(",\"state\":").string(view.state.as_str()).raw(",\"live\":").bool(view.live);
    json.raw(",\"shop\":").string(shop).raw(",\"sale\":").string(sale);
    // Empty once he is erased: nobody has an empty name.
    json.raw(",\"buyer\":").optional(Some(texts.buyer).filter(|buyer| !buyer.is_empty()));
    json.raw(",\"reference\":").optional(texts.reference);
    json.raw(",\"created_at\":").time(view.created_at);
    json.raw(",\"expires_at\":").time(view.expires_at);
    json.raw(",\"ttl_seconds\":").number(view.ttl_seconds);
    json.raw(",\"extensions_left\":").number(view.extensions_left);
    let other = |hold: Option<noondrop_core::HoldId>| hold.map(|hold| hold.to_string());
    json.raw(",\"supersedes\":").optional(other(view.supersedes).as_deref());
    json.raw(",\"superseded_by\":").optional(other(view.superseded_by).as_deref());
    json.raw(",\"lines\":[");
    for (place, line) in view.lines.0.iter().enumerate() {
        let item = catalog.items.get(line.item.0 as usize).map_or("", |item| item.name.as_str());
        json.raw(if place == 0 { "{\"line\":" } else { ",{\"line\":" }).number(place + 1);
        json.raw(",\"item\":").string(item).raw(",\"held\":").number(line.held);
        json.raw(",\"sold\":").number(line.sold).raw(",\"released\":").number(line.released);
        json.raw(",\"cancelled\":").number(line.cancelled);
        if let Some(label) = line.from {
            json.raw(",\"from\":").string(label_text(catalog, line.item, label));
        }
        json.seats(view.seats.iter().filter(|seat| usize::from(seat.line) == place + 1));
        json.raw("}");
    }
    json.raw("],\"metadata\":").raw(texts.metadata.unwrap_or("null"));
    if view.already {
        json.raw(",\"already\":true");
    }
    json.raw("}");
    json.0
}

/// The label that an item's sale has in a place.
#[must_use]
pub fn label_text(catalog: &Catalog, item: ItemIx, label: LabelIx) -> &str {
    let item = catalog.items.get(item.0 as usize);
    let sale = item.and_then(|item| catalog.sales.get(item.sale.0 as usize));
    sale.and_then(|sale| sale.labels.get(usize::from(label.0))).map_or("", Name::as_str)
}

/// The account of an item; wire names.
#[must_use]
pub fn counts_value(counts: &Counts) -> Value {
    json!({
        "total": counts.total,
        "available": counts.available(),
        "held": counts.held,
        "sold": counts.sold,
        "blocked": counts.blocked,
        "oversold": counts.oversold(),
        "oversell_limit": counts.oversell_limit,
    })
}

/// An item.
#[must_use]
pub fn item_value(view: &ItemView, catalog: &Catalog) -> Value {
    let name = catalog.items.get(view.item.0 as usize).map_or("", |item| item.name.as_str());
    let sale = catalog.sales.get(view.sale.0 as usize).map_or("", |sale| sale.name.as_str());
    let mut value = counts_value(&view.counts);
    if let Value::Object(members) = &mut value {
        members.insert("item".into(), name.into());
        members.insert("sale".into(), sale.into());
        members.insert("version".into(), view.version.into());
        members.insert("seated".into(), view.seated.into());
        members.insert("quarantined".into(), view.quarantined.into());
        members.insert("view".into(), view.is_view.into());
        let others = view.counts_against.iter();
        let others = others.filter_map(|other| catalog.items.get(other.0 as usize));
        let others: Vec<&str> = others.map(|other| other.name.as_str()).collect();
        members.insert("counts_against".into(), others.into());
        let blocks = view.blocks.iter();
        let blocks = blocks.map(|b| json!({"label": b.label.as_str(), "quantity": b.quantity}));
        members.insert("blocks".into(), blocks.collect());
    }
    value
}

/// A sale.
#[must_use]
pub fn sale_value(view: &SaleView) -> Value {
    let terms = &view.terms;
    let limits: Vec<Value> = terms
        .limits
        .iter()
        .map(|limit| {
            let items: Vec<&str> = limit.items.iter().map(Name::as_str).collect();
            json!({"name": limit.name.as_str(), "items": items, "per_buyer": limit.per_buyer})
        })
        .collect();
    json!({
        "sale": view.name.as_str(),
        "shop": view.shop.as_str(),
        "live": view.live,
        "state": view.state.as_str(),
        "version": view.version,
        "title": terms.title,
        "opens_at": terms.opens_at.map(time_text),
        "closes_at": terms.closes_at.map(time_text),
        "hold_seconds": terms.hold_seconds,
        "hold_seconds_max": terms.hold_seconds_max,
        "hold_chain_seconds_max": terms.hold_chain_seconds_max,
        "extensions_max": terms.extensions_max,
        "live_holds_per_buyer": terms.live_holds_per_buyer,
        "limits": limits,
        "returns_to": terms.returns_to.as_ref().map(|returns| {
            json!({"label": returns.label.as_str(), "lapsed": returns.lapsed})
        }),
    })
}

/// A buyer who was erased, by his digest: how the log calls him from now on.
#[must_use]
pub fn erased_value(view: &ErasedView) -> Value {
    json!({
        "buyer": view.buyer.to_string(),
        "holds": view.holds,
        "erased_at": time_text(view.at),
        "already": view.before.is_some(),
        "erased_before_at": view.before.map(time_text),
    })
}

/// A shop.
#[must_use]
pub fn shop_value(view: &ShopView) -> Value {
    json!({"shop": view.name.as_str(), "live": view.live})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc_3339_in_milliseconds() {
        assert_eq!(time_text(Timestamp(1_796_036_401_204)), "2026-11-30T11:00:01.204Z");
        assert_eq!(time_text(Timestamp(0)), "1970-01-01T00:00:00.000Z");
        assert!(time_text(Timestamp(u64::MAX)).starts_with("9999-12-30"));
    }
}
