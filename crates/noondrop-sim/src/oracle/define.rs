//! Definitions: shops, sales and their life, items and their units.

use noondrop_core::{
    Command, Digest16, ItemAdjust, ItemDefined, ItemPut, ItemView, Outcome, Refusal, SaleDefined,
    SaleIx, SaleMove, SalePut, SaleState, SaleStep, SaleView, ShopIx, ShopPut, ShopView, limits,
};

use super::{Item, Judged, Oracle, Sale, Shop, invalid, narrow};

impl Oracle {
    pub(super) fn put_shop(&mut self, name: &str, live: bool) -> (ShopIx, bool) {
        if let Some(at) = self.shops.iter().position(|shop| shop.name == name) {
            self.shops[at].live = live;
            return (ShopIx(narrow(at)), false);
        }
        self.shops.push(Shop { name: name.into(), live });
        (ShopIx(narrow(self.shops.len() - 1)), true)
    }

    pub(super) fn put_sale(&mut self, fact: &SaleDefined) {
        let at = fact.sale.0 as usize;
        if at == self.sales.len() {
            self.sales.push(Sale {
                shop: fact.shop,
                name: fact.name.to_string(),
                terms: fact.terms.clone(),
                version: fact.version,
                state: SaleState::Draft,
            });
        } else {
            self.sales[at].terms = fact.terms.clone();
            self.sales[at].version = fact.version;
        }
    }

    pub(super) fn put_item(&mut self, fact: &ItemDefined) {
        let at = fact.item.0 as usize;
        if at == self.items.len() {
            self.items.push(Item {
                sale: fact.sale,
                name: fact.name.to_string(),
                total: fact.total,
                oversell_limit: fact.oversell_limit,
                version: fact.version,
            });
        } else {
            self.items[at].oversell_limit = fact.oversell_limit;
            self.items[at].version = fact.version;
        }
    }

    pub(super) fn judge_shop(&mut self, put: &ShopPut) -> Outcome {
        let (shop, created) = self.put_shop(put.name.as_str(), put.live);
        Outcome::Shop(ShopView { shop, name: put.name.clone(), live: put.live, created })
    }

    pub(super) fn judge_sale(&mut self, command: &Command, put: &SalePut) -> Judged {
        let shop = self.shop_of(command)?;
        let terms = &put.terms;
        let rising = 1 <= terms.hold_seconds
            && terms.hold_seconds <= terms.hold_seconds_max
            && terms.hold_seconds_max <= terms.hold_chain_seconds_max;
        let ordered = terms
            .opens_at
            .zip(terms.closes_at)
            .is_none_or(|(opens_at, closes_at)| opens_at < closes_at);
        if !rising || !ordered {
            return Err(invalid("terms"));
        }
        let known = self.sale_of(command, put.sale.as_str()).ok();
        let old = known.map(|sale| self.sales[sale.0 as usize].clone());
        if old.as_ref().is_some_and(|old| old.state == SaleState::Archived) {
            return Err(Refusal::SaleArchived);
        }
        let now = old.as_ref().map_or(0, |old| old.version);
        check_version(put.if_version, now)?;
        let Some(sale) = known else {
            self.sales.push(Sale {
                shop,
                name: put.sale.to_string(),
                terms: terms.clone(),
                version: 1,
                state: SaleState::Draft,
            });
            let view = self.sale_view(SaleIx(narrow(self.sales.len() - 1)));
            return Ok(Outcome::Sale(SaleView { created: true, ..view }));
        };
        let entry = &mut self.sales[sale.0 as usize];
        if entry.terms != *terms {
            entry.terms = terms.clone();
            entry.version += 1;
        }
        Ok(Outcome::Sale(self.sale_view(sale)))
    }

    pub(super) fn judge_move(&mut self, command: &Command, step: &SaleMove, at: u64) -> Judged {
        use SaleState::{Archived, Closed, Draft, Open, Paused, Scheduled};
        let sale = self.sale_of(command, step.sale.as_str())?;
        let live = self
            .holds
            .iter()
            .filter(|hold| hold.sale == sale && hold.state == noondrop_core::HoldState::Active);
        let live = live.count();
        let entry = &self.sales[sale.0 as usize];
        let opens_later = entry.terms.opens_at.is_some_and(|opens_at| opens_at.0 > at);
        let is_over = entry.terms.closes_at.is_some_and(|closes_at| closes_at.0 <= at);
        let not_open = Refusal::SaleNotOpen { opens_at: entry.terms.opens_at };
        let to = match (step.to, entry.state) {
            (SaleStep::Publish, Draft) | (SaleStep::Reopen, Closed) if is_over => {
                return Err(invalid("closes_at"));
            }
            (SaleStep::Publish, Draft) | (SaleStep::Reopen, Closed) if opens_later => Scheduled,
            (SaleStep::Publish, Draft) | (SaleStep::Reopen, Closed) => Open,
            (SaleStep::Publish | SaleStep::Reopen, same @ (Scheduled | Open)) => same,
            (SaleStep::Pause, Open | Paused) => Paused,
            (SaleStep::Resume, Open | Paused) => Open,
            (SaleStep::Close, Scheduled | Open | Paused | Closed) => Closed,
            (SaleStep::Archive, Archived) => Archived,
            (SaleStep::Archive, Closed) if live == 0 => Archived,
            (SaleStep::Archive, Closed | Open) => return Err(invalid("sale")),
            (_, Archived) => return Err(Refusal::SaleArchived),
            (_, Closed) => return Err(Refusal::SaleClosed),
            (_, Paused) => return Err(Refusal::SalePaused),
            (_, Draft | Scheduled) => return Err(not_open),
        };
        self.sales[sale.0 as usize].state = to;
        Ok(Outcome::Sale(self.sale_view(sale)))
    }

    fn sale_view(&self, sale: SaleIx) -> SaleView {
        let entry = &self.sales[sale.0 as usize];
        let shop = &self.shops[entry.shop.0 as usize];
        let name = |text: &str| noondrop_core::Name::parse(text).expect("it came as a name");
        SaleView {
            sale,
            name: name(&entry.name),
            shop: name(&shop.name),
            live: shop.live,
            state: entry.state,
            terms: entry.terms.clone(),
            version: entry.version,
            created: false,
        }
    }

    pub(super) fn judge_item(&mut self, command: &Command, put: &ItemPut) -> Judged {
        let sale = self.sale_of(command, put.sale.as_str())?;
        self.check_books_open(sale)?;
        let Some(item) = self.item_of(sale, put.item.as_str()) else {
            check_version(put.if_version, 0)?;
            self.items.push(Item {
                sale,
                name: put.item.to_string(),
                total: put.total.expect("the simulated office names a total"),
                oversell_limit: put.oversell_limit,
                version: 1,
            });
            let view = self.item_view(noondrop_core::ItemIx(narrow(self.items.len() - 1)));
            return Ok(Outcome::Item(ItemView { created: true, ..view }));
        };
        let entry = &mut self.items[item.0 as usize];
        check_version(put.if_version, entry.version)?;
        if Some(entry.total) != put.total {
            return Err(Refusal::UseAdjust { total: entry.total });
        }
        if entry.oversell_limit != put.oversell_limit {
            entry.oversell_limit = put.oversell_limit;
            entry.version += 1;
        }
        Ok(Outcome::Item(self.item_view(item)))
    }

    pub(super) fn judge_adjust(&mut self, command: &Command, adjust: &ItemAdjust) -> Judged {
        let sale = self.sale_of(command, adjust.sale.as_str())?;
        self.check_books_open(sale)?;
        let item = self.item_of(sale, adjust.item.as_str());
        let item =
            item.ok_or_else(|| Refusal::ItemNotFound { line: 0, item: adjust.item.clone() })?;
        let entry = &mut self.items[item.0 as usize];
        check_version(adjust.if_total, entry.total)?;
        let total = i128::from(entry.total) + i128::from(adjust.by);
        if adjust.by == 0 || !(0..=i128::from(limits::TOTAL_MAX)).contains(&total) {
            return Err(invalid("by"));
        }
        entry.total = u32::try_from(total).expect("checked against its bounds");
        Ok(Outcome::Item(self.item_view(item)))
    }

    fn check_books_open(&self, sale: SaleIx) -> Result<(), Refusal> {
        match self.sales[sale.0 as usize].state {
            SaleState::Archived => Err(Refusal::SaleArchived),
            _ => Ok(()),
        }
    }

    /// Whether a reference is taken: by a hold that claims or owns units.
    pub(super) fn reference_taken(
        &self,
        reference: Digest16,
        except: Option<noondrop_core::HoldNo>,
    ) -> Option<noondrop_core::HoldNo> {
        use noondrop_core::HoldState::{Active, Confirmed};
        let mut numbered = (0..).map(noondrop_core::HoldNo).zip(&self.holds);
        let found = numbered.find(|(no, hold)| {
            hold.reference == Some(reference)
                && matches!(hold.state, Active | Confirmed)
                && Some(*no) != except
        });
        found.map(|(no, _)| no)
    }
}

fn check_version(seen: Option<u32>, now: u32) -> Result<(), Refusal> {
    match seen {
        Some(seen) if seen != now => Err(Refusal::VersionMismatch { now }),
        _ => Ok(()),
    }
}
