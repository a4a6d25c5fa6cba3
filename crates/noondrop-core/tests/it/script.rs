//! A little language for tables of events: one line per event, with what is expected of it.
//!
//! ```text
//! 0   hold a:2,b:1 by ann ttl 60 key k1 ref r1   -> #0 active 1:a=held2
//! &   confirm #0 pay p1                          -> active          (in the same turn as the line before)
//! 60  see a                                      -> held=0
//! ```
//!
//! The number is the time in seconds; expected words must be in the answer, in this order, the first at its beginning.

use std::fmt::Write as _;

use noondrop_core::{BuyerLimit, CancelTo, Override, Returns, SaleStep};

use crate::world::{
    Create, EPOCH, ItemAsked, Sent, Step, What, Which, Who, World, name, plain_terms, tell_item,
};

/// Runs a table on a world; panics at the first line that comes out differently, with all lines so far.
pub fn run(world: &mut World, table: &str) {
    let lines: Vec<&str> = table.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut told = String::new();
    let mut next = 0;
    while next < lines.len() {
        let more = lines[next + 1..].iter().take_while(|line| line.starts_with('&')).count();
        let turn = &lines[next..=next + more];
        for (line, answer) in turn.iter().zip(run_turn(world, turn)) {
            let expected = line.split_once("->").map_or("", |(_, expected)| expected.trim());
            let fits = fits(&answer, expected);
            let mark = if fits { "  " } else { "✗ " };
            writeln!(
                told,
                "{mark} {line}
       = {answer}"
            )
            .expect("a text takes more");
            assert!(fits, "an event came out differently:\n{told}");
        }
        world.state.recount().expect("every count can be told from the holds");
        next += 1 + more;
    }
}

fn fits(answer: &str, expected: &str) -> bool {
    let said: Vec<&str> = answer.split_whitespace().collect();
    let mut from = 0;
    for (place, word) in expected.split_whitespace().enumerate() {
        let Some(at) = said[from..].iter().position(|said| *said == word) else {
            return false;
        };
        // A hold's number and counts may be passed over; a code or a state may not.
        let named = said[0].starts_with('#') || said[0].starts_with("total=");
        if place == 0 && at > 0 && !named {
            return false;
        }
        from += at + 1;
    }
    true
}

fn run_turn(world: &mut World, turn: &[&str]) -> Vec<String> {
    let time = turn[0].split_whitespace().next().expect("a line is not empty");
    world.now = milliseconds(time);
    let mut entries = world.open(&[]);
    let mut answers = Vec::new();
    for line in turn {
        let asked = line.split("->").next().expect("a line has a left side");
        let words: Vec<&str> = asked.split_whitespace().skip(1).collect();
        answers.push(match words.as_slice() {
            ["see", what] => see(world, what),
            ["due"] => world
                .state
                .next_deadline()
                .map_or("never".into(), |time| format!("due={}", crate::world::tell(time))),
            words => {
                let command = world.command(&parse(words));
                let answer = world.decide(&command, &mut entries);
                world.tell(&answer)
            }
        });
    }
    world.close(&entries);
    answers
}

fn see(world: &mut World, what: &str) -> String {
    if let Some(no) = what.strip_prefix('#') {
        let no = noondrop_core::HoldNo(no.parse().expect("a hold's number"));
        let view = world.state.hold_by_no(no).expect("a hold that was made");
        return world.tell_hold(&view);
    }
    if let Some(sale) = what.strip_prefix("sale:") {
        return world.state.sale("main", sale).expect("a sale").state.as_str().into();
    }
    let (offer, what) = what.strip_prefix("offer:").map_or((false, what), |item| (true, item));
    let item = world.state.item("main", "noon", what).expect("an item of the sale");
    if offer {
        let offer = world.state.offer(item.item, world.state.last_at());
        let since = offer.sold_out_at.map(|at| format!(" since={}", crate::world::tell(at)));
        return format!("{}{}", offer.level.as_str(), since.unwrap_or_default());
    }
    tell_item(&item)
}

fn milliseconds(seconds: &str) -> u64 {
    let (whole, part) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let part: u64 = format!("{part:0<3}").parse().expect("milliseconds");
    whole.parse::<u64>().expect("seconds") * 1_000 + part
}

fn time(seconds: &str) -> noondrop_core::Timestamp {
    noondrop_core::Timestamp(EPOCH + milliseconds(seconds))
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("{text} is not a number"))
}

fn which(text: &str) -> Which {
    match text.strip_prefix('#') {
        Some(no) => Which::No(number(no)),
        None => panic!("{text} does not name a hold"),
    }
}

fn step_of(verb: &str) -> Option<SaleStep> {
    Some(match verb {
        "publish" => SaleStep::Publish,
        "pause" => SaleStep::Pause,
        "resume" => SaleStep::Resume,
        "close" => SaleStep::Close,
        "reopen" => SaleStep::Reopen,
        "archive" => SaleStep::Archive,
        _ => return None,
    })
}

/// Words after the command's own ones: `by ann ttl 60 key k1`.
struct Options<'a>(&'a [&'a str]);

impl<'a> Options<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        self.all(name).next()
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let at = self.0.iter().enumerate().filter(move |(_, word)| **word == name);
        at.filter_map(|(at, _)| self.0.get(at + 1).copied()).collect::<Vec<_>>().into_iter()
    }

    fn has(&self, word: &str) -> bool {
        self.0.contains(&word)
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.get(name).map(number)
    }

    fn fence(&self) -> Sent {
        match self.get("fence") {
            None => Sent::Own,
            Some("none") => Sent::Nothing,
            Some(other) => Sent::Of(which(other)),
        }
    }

    fn parts(&self) -> Option<Vec<(u8, Option<u32>)>> {
        let parts = self.get("lines")?.split(',').map(|part| match part.split_once(':') {
            Some((line, quantity)) => (number(line), Some(number(quantity))),
            None => (number(part), None),
        });
        Some(parts.collect())
    }
}

/// One command from its words.
pub fn parse(words: &[&str]) -> Step {
    let (verb, target) = (words[0], words[1]);
    let options = Options(&words[2..]);
    let what = match verb {
        "shop" => What::Shop { name: target.into(), live: options.has("live") },
        "sale" => sale(target, &options),
        "item" => What::Item(ItemAsked {
            sale: options.get("in").unwrap_or("noon").into(),
            item: target.into(),
            total: options.number("total"),
            oversell: options.number("oversell").unwrap_or(0),
            if_version: options.number("if"),
            against: options
                .get("against")
                .into_iter()
                .flat_map(|all| all.split(',').map(Into::into))
                .collect(),
        }),
        "block" | "unblock" => {
            let (item, quantity) = target.split_once(':').expect("item:units");
            What::Block {
                item: item.into(),
                quantity: number(quantity),
                label: options.get("label").expect("under which label").into(),
                back: verb == "unblock",
            }
        }
        "adjust" => What::Adjust {
            item: target.into(),
            by: options.number("by").expect("by how many"),
            if_total: options.number("if"),
        },
        "hold" => hold(target, &options),
        "confirm" => What::Confirm {
            hold: which(target),
            fence: options.fence(),
            payment: options.get("pay").unwrap_or("none").into(),
        },
        "extend" => What::Extend {
            hold: which(target),
            fence: options.fence(),
            seconds: options.number("seconds").expect("for how many seconds"),
            reason: options.get("reason").map(Into::into),
        },
        "release" => What::Release {
            hold: which(target),
            fence: options.fence(),
            parts: options.parts(),
            reason: options.has("reason"),
        },
        "cancel" => What::Cancel {
            hold: which(target),
            fence: options.fence(),
            parts: options.parts(),
            to: match options.get("to") {
                None if options.has("destroyed") => Some(CancelTo::Destroyed),
                None => None,
                Some("stock") => Some(CancelTo::Stock),
                Some(label) => Some(CancelTo::Block(name(label))),
            },
        },
        _ => What::Move {
            sale: target.into(),
            to: step_of(verb).unwrap_or_else(|| panic!("nobody understands {verb}")),
        },
    };
    let who = match options.get("as") {
        None | Some("seller") => Who::Seller,
        Some("auditor") => Who::Auditor,
        Some("admin") => Who::Admin,
        Some(buyer) => Who::Buyer(buyer.into()),
    };
    Step {
        who,
        shop: options.get("shop").unwrap_or("main").into(),
        key: options.get("key").or(options.get("barekey")).map(Into::into),
        bare_key: options.has("barekey"),
        what,
    }
}

fn sale(target: &str, options: &Options<'_>) -> What {
    let limits = options.all("limit").map(|limit| {
        let (named, most) = limit.split_once('=').expect("name:items=units");
        let (limit, items) = named.split_once(':').expect("name:items=units");
        let items = items.split(',').filter(|item| !item.is_empty()).map(name).collect();
        BuyerLimit { name: name(limit), items, per_buyer: number(most) }
    });
    let mut terms = plain_terms();
    terms.limits = limits.collect();
    terms.opens_at = options.get("opens").map(time);
    terms.closes_at = options.get("closes").map(time);
    terms.hold_seconds = options.number("ttl").unwrap_or(terms.hold_seconds);
    terms.hold_seconds_max = options.number("ttlmax").unwrap_or(terms.hold_seconds_max);
    terms.hold_chain_seconds_max = options.number("chain").unwrap_or(terms.hold_chain_seconds_max);
    terms.extensions_max = options.number("extensions").unwrap_or(terms.extensions_max);
    terms.live_holds_per_buyer = options.number("holds");
    terms.returns_to = options
        .get("returns")
        .map(|label| Returns { label: name(label), lapsed: options.has("lapsed") });
    terms.title = options.get("title").unwrap_or_default().into();
    let if_version = options.number("if");
    What::Sale { sale: target.into(), terms: Box::new(terms), if_version }
}

fn over(code: &str) -> Override {
    Override::parse(code).expect("a code that may be passed over")
}

fn hold(target: &str, options: &Options<'_>) -> What {
    let lines = target.split(',').filter(|line| *line != "-").map(|line| {
        let (item, quantity) = line.split_once(':').expect("item:units or item:units<label");
        let (quantity, label) = match quantity.split_once('<') {
            Some((quantity, label)) => (quantity, Some(label.to_owned())),
            None => (quantity, None),
        };
        (item.into(), number(quantity), label)
    });
    What::Create(Box::new(Create {
        sale: options.get("in").unwrap_or("noon").into(),
        lines: lines.collect(),
        buyer: options.get("by").unwrap_or("ann").into(),
        ttl: options.number("ttl"),
        reference: options.get("ref").map(Into::into),
        supersedes: options.get("replaces").map(|old| (which(old), options.fence())),
        retake: options.get("retakes").map(which),
        payment: options.get("pays").map(Into::into),
        overrides: options.all("over").map(over).collect(),
    }))
}
