//! A fact as a sentence that people who answer buyers can read aloud: who, what, and why.

use noondrop_core::seats::SeatNo;
use noondrop_core::{
    BlockAct, BlockMoved, CancelTo, Digest16, Draw, Entry, Fact, HoldAct, HoldActRefused,
    HoldCreated, HoldNo, HoldRefused, HoldReleased, HoldTouched, HoldsExpired, ItemDefined, ItemIx,
    KeyUse, LabelIx, LineMoved, LineRefusal, Private, Refusal, SeatOut, SeatStanding, SeatsChanged,
    StockCode, Timestamp,
};

use super::naming::{Naming, joined, were};
use crate::http::render::time_text;

/// Lapsed holds that a sentence names one by one.
const NAMED_MAX: usize = 3;

/// What a fact says; `naming` stands right before the fact.
#[must_use]
pub fn sentence(entry: &Entry, at: Timestamp, naming: Naming<'_>) -> String {
    let told = Told { naming, at, private: entry.private.as_ref() };
    told.definition(&entry.fact)
        .or_else(|| told.attempt(&entry.fact))
        .unwrap_or_else(|| told.change(&entry.fact))
}

/// Why an attempt was refused; nothing for what was not.
#[must_use]
pub fn why(entry: &Entry, at: Timestamp, naming: Naming<'_>) -> String {
    let told = Told { naming, at, private: entry.private.as_ref() };
    match &entry.fact {
        Fact::HoldRefused(refused) => told.why(&refused.refusal),
        _ => String::new(),
    }
}

/// A list with commas.
fn listed(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

fn named(what: &str, text: Option<&String>, digest: Digest16) -> String {
    match text {
        Some(text) if !text.is_empty() => format!("{what} {text}"),
        _ => format!("{what} (digest {digest})"),
    }
}

const fn standing(standing: SeatStanding) -> &'static str {
    match standing {
        SeatStanding::Held => "already held",
        SeatStanding::Sold => "already sold",
        SeatStanding::Blocked => "set aside",
        SeatStanding::Removed => "removed",
        SeatStanding::Free => "free, but not in that block",
    }
}

fn with_key(key: Option<KeyUse>) -> String {
    key.map(|key| format!(", with key {}", key.hash)).unwrap_or_default()
}

#[derive(Clone, Copy)]
struct Told<'a> {
    naming: Naming<'a>,
    at: Timestamp,
    private: Option<&'a Private>,
}

impl Told<'_> {
    fn definition(&self, fact: &Fact) -> Option<String> {
        let by = |actor| self.naming.actor(actor);
        Some(match fact {
            Fact::LogStarted(log) => {
                format!("the log {} began, at format level {}", log.log_id, log.level)
            }
            Fact::ShopDefined(shop) => {
                let live = if shop.live { "sells for real" } else { "is for tests" };
                format!("{} defined shop {}, which {live}", by(shop.by), shop.name)
            }
            Fact::ActorSeen(actor) => {
                let role = actor.role.as_str();
                format!("{} ({role}) of shop {} acted for the first time", actor.name, actor.shop)
            }
            Fact::SaleDefined(sale) => {
                format!("{} defined sale {}, version {}", by(sale.by), sale.name, sale.version)
            }
            Fact::SaleMoved(moved) => {
                let sale = self.naming.sale(moved.sale);
                format!("{} made sale {sale} {}", by(moved.by), moved.state.as_str())
            }
            Fact::ItemDefined(item) => {
                format!(
                    "{} defined item {} of sale {} with {} units, {} beyond them may be oversold",
                    by(item.by),
                    item.name,
                    self.naming.sale(item.sale),
                    item.total,
                    item.oversell_limit
                ) + &self.shares(item)
            }
            Fact::ItemAdjusted(item) => format!(
                "{} changed {} by {:+} to {} units{}{}",
                by(item.by),
                self.naming.item(item.item),
                item.by_units,
                item.total,
                self.reason(),
                with_key(item.key)
            ),
            Fact::ItemBlocked(moved) => self.set_aside("set aside", moved, "under"),
            Fact::ItemUnblocked(moved) => self.set_aside("put on sale again", moved, "from under"),
            Fact::BlockRefused(refused) => format!(
                "{} wanted to {} {} of {} under {}{}{}: refused, {}",
                by(refused.by),
                match refused.operation {
                    BlockAct::Block => "set aside",
                    BlockAct::Unblock => "put on sale again",
                },
                refused.quantity,
                self.naming.item(refused.item),
                refused.label,
                self.reason(),
                with_key(refused.key),
                self.why(&refused.refusal)
            ),
            Fact::SeatsChanged(changed) => self.seats_changed(changed),
            Fact::SettingsChanged(settings) => format!(
                "the settings became: success keys {} h, refusal keys {} s, at most {} keys",
                settings.success_key_hours, settings.refusal_key_seconds, settings.keys_max
            ),
            Fact::LossAccepted(loss) => format!(
                "an operator went on although row {} was answered and the log ended at {}",
                loss.acknowledged, loss.found
            ),
            Fact::LogRestored(restored) => format!(
                "the log was restored from a backup that ended at row {}; what was answered after that row is not in it",
                restored.after
            ),
            Fact::BuyerErased(erased) => format!(
                "{} erased buyer {}{}, who had had {} holds: his texts are in no fact before this one",
                by(erased.by),
                erased.buyer,
                self.reason(),
                erased.holds
            ),
            _ => return None,
        })
    }

    fn shares(&self, item: &ItemDefined) -> String {
        if item.draws == [item.item] {
            return String::new();
        }
        let pools = item.draws.iter().map(|pool| self.naming.item(*pool));
        format!("; a unit of it takes from {}", listed(pools))
    }

    fn seats_changed(&self, changed: &SeatsChanged) -> String {
        let names =
            |seats: &[SeatNo]| joined(seats.iter().map(|s| self.naming.seat(changed.item, *s)));
        let added = joined(changed.added.iter().map(|seat| seat.name.to_string()));
        let what = [
            ("added", added),
            ("planned again", names(&changed.planned)),
            ("removed", names(&changed.removed)),
        ];
        let what = what.iter().filter(|(_, seats)| !seats.is_empty());
        let unplanned = match changed.unplanned {
            0 => String::new(),
            1 => ", and 1 removed seat still has an owner".to_owned(),
            seats => format!(", and {seats} removed seats still have an owner"),
        };
        format!(
            "{} changed the seats of {}{}: {}; it has {} seats now{unplanned}{}",
            self.naming.actor(changed.by),
            self.naming.item(changed.item),
            self.reason(),
            listed(what.map(|(how, seats)| format!("{how} {seats}"))),
            changed.total,
            with_key(changed.key)
        )
    }

    fn set_aside(&self, what: &str, moved: &BlockMoved, under: &str) -> String {
        let units = match &moved.seats {
            Some(seats) => self.naming.seats(moved.item, seats),
            None => format!("{} of {}", moved.quantity, self.naming.item(moved.item)),
        };
        format!(
            "{} {what} {units} {under} {}; {} {} there now{}{}",
            self.naming.actor(moved.by),
            moved.label,
            moved.blocked,
            if moved.blocked == 1 { "is" } else { "are" },
            self.reason(),
            with_key(moved.key)
        )
    }

    fn attempt(&self, fact: &Fact) -> Option<String> {
        match fact {
            Fact::HoldCreated(created) => Some(self.created(created)),
            Fact::HoldRefused(refused) => Some(self.refused(refused)),
            Fact::KeyRepeated(repeated) => {
                let times =
                    if repeated.count == 1 { "once" } else { &format!("{} times", repeated.count) };
                Some(format!(
                    "the request with key {} came again, {times} by now; each was given the first answer",
                    repeated.key
                ))
            }
            _ => None,
        }
    }

    fn change(&self, fact: &Fact) -> String {
        match fact {
            Fact::HoldConfirmed(confirmed) => format!(
                "{} confirmed {} with {}: sold",
                self.naming.actor(confirmed.touched.by),
                self.hold(confirmed.touched.hold),
                named(
                    "payment",
                    self.private.and_then(|p| p.payment_ref.as_ref()),
                    confirmed.payment
                )
            ),
            Fact::HoldConfirmedAgain(touched) => {
                let who = self.naming.actor(touched.by);
                format!(
                    "{who} confirmed {} again with the same payment: nothing changed",
                    self.hold(touched.hold)
                )
            }
            Fact::HoldExtended(extended) => format!(
                "{} extended {} to {}{}",
                self.naming.actor(extended.touched.by),
                self.hold(extended.touched.hold),
                time_text(extended.expires_at),
                self.reason()
            ),
            Fact::HoldReleased(released) => self.released(released),
            Fact::HoldsExpired(expired) => self.expired(expired),
            Fact::HoldCancelled(cancelled) => {
                let to = match &cancelled.to {
                    CancelTo::Stock => "they are on sale again".to_owned(),
                    CancelTo::Destroyed => "they are gone for good".to_owned(),
                    CancelTo::Block(label) => format!("they are set aside under {label}"),
                };
                let what =
                    self.parts(&cancelled.touched, &cancelled.lines, cancelled.seats.as_deref());
                format!("{what} cancelled{}; {to}", self.reason())
            }
            Fact::HoldActRefused(refused) => self.act_refused(refused),
            // Told by the two above; a new kind lands here until it has its sentence.
            other => other.kind().replace(['.', '_'], " "),
        }
    }

    fn created(&self, created: &HoldCreated) -> String {
        let lines = created.lines.iter().map(|line| {
            let label = line.draws.first().and_then(|draw| draw.label);
            self.asked(line.item, line.quantity, line.seats.as_deref(), label)
        });
        let usual = self.at.plus_seconds(u64::from(created.ttl_seconds));
        let until = time_text(created.expires_at.unwrap_or(usual));
        let replaces =
            created.supersedes.map(|old| format!(", in place of {}", self.hold(old.hold)));
        let retakes =
            created.retakes.map(|old| format!(", taking the units of {} again", self.hold(old)));
        let stock = self.stock_before(created);
        format!(
            "{} asked for {} of sale {} for {}{}{}: granted as {} until {until}{}{}{}{}{stock}",
            self.naming.actor(created.by),
            listed(lines),
            self.naming.sale(created.sale),
            self.buyer(created.buyer),
            self.reference(created.reference),
            with_key(created.key),
            self.hold(created.hold),
            replaces.unwrap_or_default(),
            retakes.unwrap_or_default(),
            self.overridden(created),
            if stock.is_empty() { "" } else { "; " },
        )
    }

    /// One line of a wish: seats by their names, units by their number, and the block that they come out of.
    fn asked(
        &self,
        item: ItemIx,
        quantity: u32,
        seats: Option<&[SeatNo]>,
        from: Option<LabelIx>,
    ) -> String {
        let block = self.naming.out_of(item, from);
        match seats.filter(|seats| !seats.is_empty()) {
            Some(seats) => format!("{}{block}", self.naming.seats(item, seats)),
            None => format!("{quantity} of {}{block}", self.naming.item(item)),
        }
    }

    /// What the box office passed over.
    fn overridden(&self, created: &HoldCreated) -> String {
        let Some(codes) = &created.overridden else { return String::new() };
        let codes = codes.iter().map(|code| code.as_str().to_owned());
        format!(", although it was {}{}", listed(codes), self.reason())
    }

    fn stock_before(&self, created: &HoldCreated) -> String {
        let pools = created.lines.iter().flat_map(|line| line.draws.iter());
        let stock = pools.filter(|draw| draw.label.is_none()).filter_map(|draw| {
            let counts = self.naming.sees.counts(draw.pool)?;
            let item = self.naming.item(draw.pool);
            let free = counts.free();
            let verb = if free == 1 { "was" } else { "were" };
            Some(format!("{free} of {} {item} {verb} free then", counts.total))
        });
        listed(stock)
    }

    fn refused(&self, refused: &HoldRefused) -> String {
        let lines = refused
            .lines
            .iter()
            .map(|line| self.asked(line.item, line.quantity, line.seats.as_deref(), line.from));
        format!(
            "{} asked for {} of sale {} for {}{}{}: refused, {}",
            self.naming.actor(refused.by),
            listed(lines),
            self.naming.sale(refused.sale),
            self.buyer(refused.buyer),
            self.reference(refused.reference),
            with_key(refused.key),
            self.why(&refused.refusal)
        )
    }

    fn why(&self, refusal: &Refusal) -> String {
        let code = refusal.code();
        let because = match refusal {
            Refusal::Stock { lines, .. } => listed(lines.iter().map(|line| self.shortage(line))),
            Refusal::LimitPerBuyer { limit, limit_max, used } => {
                format!("{limit} allows {limit_max} per buyer and this one had {used}")
            }
            Refusal::BuyerHasHold { hold: Some(hold) } => format!("the buyer had {hold}"),
            Refusal::ReferenceInUse { hold } => format!("the reference belonged to {hold}"),
            Refusal::HoldReleased { superseded_by: Some(by) } => format!("{by} had replaced it"),
            Refusal::ConfirmedWithOtherPayment { .. } => {
                "another payment had confirmed it: this one is a second charge".into()
            }
            Refusal::HoldExpired => "its time had run out".into(),
            _ => return code.to_owned(),
        };
        format!("{code}: {because}")
    }

    fn shortage(&self, line: &LineRefusal) -> String {
        let limit = line.limited_by.filter(|pool| *pool != line.item);
        let item = self.naming.item(limit.unwrap_or(line.item));
        let limited = match limit {
            Some(_) => format!("{} was limited by {item}: ", self.naming.item(line.item)),
            None => String::new(),
        };
        let asked = line.requested;
        let taken = self.taken_seats(line);
        if line.from.is_some() && taken.is_none() {
            let block = self.naming.out_of(line.item, line.from);
            return format!(
                "{} of {item}{block} {} left where {asked} {} asked for",
                line.available,
                were(line.available),
                were(asked)
            );
        }
        let shortage = match line.code {
            StockCode::SoldOut => format!("all of {item} were sold"),
            StockCode::AllHeld => {
                format!("no {item} was free, {} {} in other baskets", line.held, were(line.held))
            }
            StockCode::NotEnoughFree => format!(
                "{} of {item} {} free and {} in other baskets where {asked} {} asked for",
                line.available,
                were(line.available),
                line.held,
                were(asked)
            ),
            StockCode::SeatTaken => taken.unwrap_or_else(|| format!("a seat of {item} was taken")),
            StockCode::NotTogether => {
                format!(
                    "{} of {item} {} free, but no {asked} next to each other",
                    line.available,
                    were(line.available)
                )
            }
        };
        format!("{limited}{shortage}")
    }

    /// "A-1-7 of hall was already held"
    fn taken_seats(&self, line: &LineRefusal) -> Option<String> {
        let item = self.naming.item(line.item);
        let seats = line.seats.iter().flatten();
        let seats =
            seats.map(|lack| format!("{} of {item} was {}", lack.seat, standing(lack.standing)));
        Some(joined(seats)).filter(|seats| !seats.is_empty())
    }

    fn released(&self, released: &HoldReleased) -> String {
        let what = self.parts(&released.touched, &released.lines, released.seats.as_deref());
        let by = released.superseded_by.map(|by| format!(", replaced by {}", self.hold(by)));
        format!("{what} released{}{}", by.unwrap_or_default(), self.reason())
    }

    /// What somebody gave back: seats by their names, other units by line.
    fn parts(
        &self,
        touched: &HoldTouched,
        lines: &[LineMoved],
        seats: Option<&[SeatOut]>,
    ) -> String {
        let seats = seats.unwrap_or_default();
        let counted = lines.iter().filter(|part| !seats.iter().any(|out| out.line == part.line));
        let counted = counted.map(|part| format!("{} of line {}", part.quantity, part.line));
        let parts = self.naming.seats_out(seats.iter()).into_iter().chain(counted);
        let hold = self.hold(touched.hold);
        format!("{} gave back {} of {hold}:", self.naming.actor(touched.by), listed(parts))
    }

    /// Holds lapse by the thousand; told is of those that may be seen, and of what they gave back if that is all of them.
    fn expired(&self, expired: &HoldsExpired) -> String {
        let shown = || expired.holds().filter(|(no, _)| self.naming.sees.lapse(*no));
        let (count, all) = (shown().count(), expired.holds().count());
        let some = shown().take(NAMED_MAX).map(|(no, _)| self.hold(no));
        let more = count.saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let all_shown = count == all;
        let seats = expired.seats.iter().flatten();
        let seats = seats.filter(|out| all_shown || self.naming.sees.seat(out.item, out.seat));
        let seats = self.naming.seats_out(seats);
        let named = |draw: &&Draw| expired.seats.iter().flatten().any(|out| out.item == draw.pool);
        let what = if all_shown {
            let counted = expired.moves.iter().filter(|draw| !named(draw));
            listed(seats.into_iter().chain(counted.map(|draw| self.naming.units_back(draw))))
        } else {
            seats.unwrap_or_else(|| "what was held".to_owned())
        };
        format!("time ran out for {}{more}: {what} came back", listed(some))
    }

    fn act_refused(&self, refused: &HoldActRefused) -> String {
        let act = match refused.operation {
            HoldAct::Confirm => "confirm",
            HoldAct::Extend => "extend",
            HoldAct::Release => "release",
            HoldAct::Cancel => "cancel",
            HoldAct::Supersede => "replace",
            HoldAct::Retake => "take again the units of",
        };
        let who = self.naming.actor(refused.touched.by);
        let hold = self.hold(refused.touched.hold);
        format!("{who} wanted to {act} {hold}: refused, {}", self.why(&refused.refusal))
    }

    fn hold(&self, no: HoldNo) -> String {
        self.naming.hold(no)
    }

    fn buyer(&self, digest: Digest16) -> String {
        named("buyer", self.private.and_then(|texts| texts.buyer.as_ref()), digest)
    }

    fn reference(&self, digest: Option<Digest16>) -> String {
        let text = self.private.and_then(|texts| texts.reference.as_ref());
        digest.map(|digest| format!(" ({})", named("reference", text, digest))).unwrap_or_default()
    }

    fn reason(&self) -> String {
        let reason = self.private.and_then(|texts| texts.reason.as_ref());
        reason.map(|reason| format!(" ({reason})")).unwrap_or_default()
    }
}
