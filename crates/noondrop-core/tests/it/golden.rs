//! The bytes of every kind of fact, checked in; and a decoder that takes nothing else.
//!
//! `NOONDROP_UPDATE=1` writes the file anew. A line that changes is a format that changed: old logs hold the old one.

use std::fmt::Write as _;

use noondrop_core::codec::{CodecError, decode_row, encode_fact, encode_private};
use noondrop_core::seats::{SeatDef, SeatNo};
use noondrop_core::{
    ActorIx, ActorSeen, BlockAct, BlockMoved, BlockRefused, BuyerErased, CancelTo, Digest16, Draw,
    Entry, ExpiredRun, Fact, HoldAct, HoldActRefused, HoldCancelled, HoldConfirmed, HoldCreated,
    HoldExtended, HoldId, HoldNo, HoldRefused, HoldReleased, HoldTouched, HoldsExpired,
    ItemAdjusted, ItemDefined, ItemIx, KeyRepeated, KeyUse, LEVEL, LabelIx, LineMoved, LineRefusal,
    LineTaken, LineWanted, LogRestored, LogStarted, LossAccepted, Override, Private, Refusal,
    Returns, Role, SaleDefined, SaleIx, SaleMoved, SaleState, SeatLack, SeatOut, SeatStanding,
    SeatsChanged, Seq, Settings, ShopDefined, ShopIx, StockCode, Superseded, Timestamp,
};

use crate::checks::strict_terms;
use crate::world::name;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/golden/facts.txt");
/// Places at which a fact may go on: what is added there means something.
const OPEN_ENDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/golden/open_ends.txt");

fn digest(n: u8) -> Digest16 {
    Digest16([n; 16])
}

fn used() -> KeyUse {
    KeyUse { hash: digest(1), fingerprint: 0x0123_4567_89ab_cdef }
}

fn id() -> HoldId {
    HoldId { seq: Seq(300), index: 2, tag: [8; 10] }
}

fn draw() -> Draw {
    Draw { pool: ItemIx(4), quantity: 70_000, label: None }
}

fn touched(key: Option<KeyUse>) -> HoldTouched {
    HoldTouched { hold: HoldNo(9), previous: Seq(300), by: ActorIx(2), key }
}

const TIME: Timestamp = Timestamp(1_800_000_000_123);

/// Every kind of fact: with all that it can have, and with only what it must.
fn samples() -> Vec<(&'static str, Fact)> {
    [definitions(), holds(), holds_that_end(), refusals(), rest(), shares_and_blocks()].concat()
}

fn definitions() -> Vec<(&'static str, Fact)> {
    let (shop, sale, item, by) = (ShopIx(1), SaleIx(2), ItemIx(4), ActorIx(2));
    let mut bare = crate::world::plain_terms();
    bare.extensions_max = 0;
    let mut full = strict_terms();
    full.title = "Mittagsverkauf".into();
    (full.opens_at, full.closes_at) = (Some(TIME), Some(Timestamp(TIME.0 + 1)));
    let defined = |terms| SaleDefined { sale, shop, name: name("noon"), terms, version: 3, by };
    vec![
        (
            "full",
            Fact::LogStarted(LogStarted {
                log_id: digest(7),
                key_secret: [6; 32],
                level: 1,
                settings: Settings::default(),
            }),
        ),
        ("full", Fact::ShopDefined(ShopDefined { shop, name: name("main"), live: true, by })),
        (
            "full",
            Fact::ActorSeen(ActorSeen {
                actor: by,
                name: name("till"),
                role: Role::Seller,
                shop: name("main"),
            }),
        ),
        ("full", Fact::SaleDefined(defined(full))),
        ("bare", Fact::SaleDefined(defined(bare))),
        ("full", Fact::SaleMoved(SaleMoved { sale, state: SaleState::Open, by })),
        (
            "full",
            Fact::ItemDefined(ItemDefined {
                item,
                sale,
                name: name("floor"),
                total: 500,
                oversell_limit: 3,
                draws: vec![item, ItemIx(0)],
                version: 1,
                by,
                counts_against: None,
                seated: None,
            }),
        ),
        (
            "seated",
            Fact::ItemDefined(ItemDefined {
                item,
                sale,
                name: name("hall"),
                total: 0,
                oversell_limit: 0,
                draws: vec![item],
                version: 1,
                by,
                counts_against: None,
                seated: Some(true),
            }),
        ),
        ("full", Fact::SeatsChanged(seats_changed(item, by, Some(used())))),
        ("bare", Fact::SeatsChanged(seats_changed(item, by, None))),
        (
            "full",
            Fact::ItemAdjusted(ItemAdjusted {
                item,
                total: 3,
                by_units: -2,
                by,
                key: Some(used()),
            }),
        ),
        ("bare", Fact::ItemAdjusted(ItemAdjusted { item, total: 3, by_units: 2, by, key: None })),
    ]
}

fn seats_changed(item: ItemIx, by: ActorIx, key: Option<KeyUse>) -> SeatsChanged {
    let full = key.is_some();
    let added = SeatDef {
        name: name("A-1-7"),
        section: name("A"),
        row: name("1"),
        number: 7,
        rank: 30,
        tags: if full { vec![name("wheelchair")] } else { Vec::new() },
        zone: full.then(|| name("gold")),
    };
    SeatsChanged {
        item,
        added: vec![added],
        planned: vec![SeatNo(3)],
        removed: vec![SeatNo(300)],
        total: 500,
        by,
        key,
        unplanned: 3,
        unblocked: full.then(|| vec![Draw { label: Some(LabelIx(1)), ..draw() }]),
    }
}

/// What items share, and what is set aside: only ever added behind the samples of before.
#[expect(clippy::too_many_lines, reason = "a list of samples")]
fn shares_and_blocks() -> Vec<(&'static str, Fact)> {
    let (item, by) = (ItemIx(4), ActorIx(2));
    let label = Some(LabelIx(1));
    let mut terms = crate::world::plain_terms();
    terms.returns_to = Some(Returns { label: name("returns"), lapsed: true });
    let moved = |key| BlockMoved {
        item,
        label: name("sponsor"),
        quantity: 2,
        blocked: 5,
        by,
        key,
        seats: None,
    };
    let lack = LineRefusal {
        line: 0,
        item,
        code: StockCode::NotEnoughFree,
        limited_by: None,
        requested: 3,
        available: 2,
        held: 1,
        most: 2,
        may_free_at: None,
        from: label,
        seats: None,
    };
    let refusal = Refusal::Stock { lines: vec![lack], retake: false };
    let refused = |operation, key| BlockRefused {
        item,
        label: name("sponsor"),
        quantity: 3,
        operation,
        refusal: refusal.clone(),
        by,
        key,
    };
    let out = Draw { label, ..draw() };
    let both: noondrop_core::Draws =
        [out, Draw { pool: ItemIx(5), ..draw() }].into_iter().collect();
    let line = LineTaken { item, quantity: 2, draws: both.clone(), seats: None };
    let sale = SaleIx(2);
    let lines = || [LineMoved { line: 1, quantity: 2 }].into_iter().collect();
    vec![
        (
            "returns",
            Fact::SaleDefined(SaleDefined {
                sale,
                shop: ShopIx(1),
                name: name("noon"),
                terms,
                version: 3,
                by,
            }),
        ),
        (
            "view",
            Fact::ItemDefined(ItemDefined {
                item,
                sale,
                name: name("adult"),
                total: 0,
                oversell_limit: 0,
                draws: vec![ItemIx(5)],
                version: 1,
                by,
                counts_against: Some(vec![ItemIx(5)]),
                seated: None,
            }),
        ),
        ("full", Fact::ItemBlocked(moved(Some(used())))),
        ("bare", Fact::ItemBlocked(moved(None))),
        ("full", Fact::ItemUnblocked(moved(Some(used())))),
        ("full", Fact::BlockRefused(refused(BlockAct::Unblock, Some(used())))),
        ("bare", Fact::BlockRefused(refused(BlockAct::Block, None))),
        (
            "block",
            Fact::HoldCreated(HoldCreated { lines: [line].into_iter().collect(), ..created() }),
        ),
        (
            "block",
            Fact::HoldReleased(HoldReleased {
                touched: touched(None),
                lines: lines(),
                moves: both.clone(),
                superseded_by: None,
                seats: None,
            }),
        ),
        (
            "block",
            Fact::HoldCancelled(HoldCancelled {
                touched: touched(None),
                lines: lines(),
                moves: both,
                to: CancelTo::Block(name("returns")),
                seats: None,
            }),
        ),
        (
            "block",
            Fact::HoldRefused(HoldRefused {
                sale,
                by,
                buyer: digest(2),
                reference: None,
                lines: [LineWanted { item, quantity: 2, from: label, seats: None }]
                    .into_iter()
                    .collect(),
                refusal,
                key: None,
                origin: None,
            }),
        ),
    ]
}

fn created() -> HoldCreated {
    let line = LineTaken {
        item: ItemIx(4),
        quantity: 2,
        draws: [draw()].into_iter().collect(),
        seats: None,
    };
    HoldCreated {
        hold: HoldNo(9),
        sale: SaleIx(2),
        by: ActorIx::BUYER,
        buyer: digest(2),
        ttl_seconds: 300,
        extensions: 2,
        lines: [line].into_iter().collect(),
        key: None,
        reference: None,
        expires_at: None,
        supersedes: None,
        retakes: None,
        origin: None,
        overridden: None,
    }
}

fn holds() -> Vec<(&'static str, Fact)> {
    let bare = created();
    let line = bare.lines[0].clone();
    let seats = LineTaken { seats: Some(vec![SeatNo(1), SeatNo(300)]), ..line.clone() };
    let full = HoldCreated {
        lines: [line.clone(), line, seats].into_iter().collect(),
        key: Some(used()),
        reference: Some(digest(3)),
        expires_at: Some(TIME),
        supersedes: Some(Superseded { hold: HoldNo(7), chain_from: TIME }),
        retakes: Some(HoldNo(6)),
        origin: Some(digest(5)),
        ..bare.clone()
    };
    let overridden = HoldCreated { overridden: Some(Override::ALL.to_vec()), ..bare.clone() };
    let moves = || [draw()].into_iter().collect();
    let paid = |key| HoldConfirmed { touched: touched(key), payment: digest(4), moves: moves() };
    let longer = |key, counted| HoldExtended { touched: touched(key), expires_at: TIME, counted };
    vec![
        ("full", Fact::HoldCreated(full)),
        ("bare", Fact::HoldCreated(bare)),
        ("override", Fact::HoldCreated(overridden)),
        ("full", Fact::HoldConfirmed(paid(Some(used())))),
        ("bare", Fact::HoldConfirmed(paid(None))),
        ("full", Fact::HoldConfirmedAgain(touched(Some(used())))),
        ("bare", Fact::HoldConfirmedAgain(touched(None))),
        ("full", Fact::HoldExtended(longer(Some(used()), true))),
        ("bare", Fact::HoldExtended(longer(None, false))),
    ]
}

fn holds_that_end() -> Vec<(&'static str, Fact)> {
    let moves = || [draw()].into_iter().collect();
    let lines = || [LineMoved { line: 1, quantity: 2 }].into_iter().collect();
    let back = |key, superseded_by| HoldReleased {
        touched: touched(key),
        lines: lines(),
        moves: moves(),
        superseded_by,
        seats: superseded_by.map(|_| {
            vec![SeatOut {
                line: 1,
                item: ItemIx(4),
                seat: SeatNo(300),
                to: None,
                gone: Some(true),
            }]
        }),
    };
    let gone = |key: Option<KeyUse>, to| HoldCancelled {
        touched: touched(key),
        lines: lines(),
        moves: moves(),
        to,
        seats: key.map(|_| {
            vec![SeatOut {
                line: 1,
                item: ItemIx(4),
                seat: SeatNo(300),
                to: None,
                gone: Some(true),
            }]
        }),
    };
    let runs = vec![
        ExpiredRun { skip: 5, count: 70_000, previous: Seq(300) },
        ExpiredRun { skip: 0, count: 1, previous: Seq(301) },
    ];
    vec![
        ("full", Fact::HoldReleased(back(Some(used()), Some(HoldNo(10))))),
        ("bare", Fact::HoldReleased(back(None, None))),
        (
            "full",
            Fact::HoldsExpired(HoldsExpired {
                runs,
                moves: vec![draw()],
                seats: Some(vec![SeatOut {
                    line: 1,
                    item: ItemIx(4),
                    seat: SeatNo(300),
                    to: Some(LabelIx(1)),
                    gone: None,
                }]),
            }),
        ),
        ("full", Fact::HoldCancelled(gone(Some(used()), CancelTo::Destroyed))),
        ("bare", Fact::HoldCancelled(gone(None, CancelTo::Stock))),
    ]
}

/// Each refusal that can be in a log.
fn refusals() -> Vec<(&'static str, Fact)> {
    let refused = |refusal, all: bool| {
        Fact::HoldRefused(HoldRefused {
            sale: SaleIx(2),
            by: ActorIx(2),
            buyer: digest(2),
            reference: all.then(|| digest(3)),
            lines: [LineWanted {
                item: ItemIx(4),
                quantity: 2,
                from: None,
                seats: all.then(|| vec![SeatNo(1)]),
            }]
            .into_iter()
            .collect(),
            refusal,
            key: all.then(used),
            origin: all.then(|| digest(5)),
        })
    };
    let lack = |code, full: bool| LineRefusal {
        line: 1,
        item: ItemIx(4),
        code,
        limited_by: full.then_some(ItemIx(5)),
        requested: 3,
        available: 2,
        held: 1,
        most: 3,
        may_free_at: full.then_some(TIME),
        from: None,
        seats: full.then(|| vec![SeatLack { seat: name("A-1-7"), standing: SeatStanding::Sold }]),
    };
    let short = vec![
        lack(StockCode::NotEnoughFree, true),
        lack(StockCode::AllHeld, false),
        lack(StockCode::SoldOut, false),
        lack(StockCode::SeatTaken, false),
        lack(StockCode::NotTogether, false),
    ];
    let limit = Refusal::LimitPerBuyer { limit: name("four"), limit_max: 4, used: 3 };
    let of_hold = |operation, refusal, key| {
        Fact::HoldActRefused(HoldActRefused { touched: touched(key), operation, refusal })
    };
    let replaced = Refusal::HoldReleased { superseded_by: Some(id()) };
    vec![
        ("full", refused(Refusal::Stock { lines: short, retake: false }, true)),
        (
            "retake",
            refused(
                Refusal::Stock { lines: vec![lack(StockCode::SoldOut, false)], retake: true },
                false,
            ),
        ),
        ("limit", refused(limit, false)),
        ("reference", refused(Refusal::ReferenceInUse { hold: id() }, false)),
        ("has_hold", refused(Refusal::BuyerHasHold { hold: Some(id()) }, false)),
        ("has_holds", refused(Refusal::BuyerHasHold { hold: None }, false)),
        (
            "full",
            of_hold(
                HoldAct::Confirm,
                Refusal::ConfirmedWithOtherPayment { hold: id() },
                Some(used()),
            ),
        ),
        ("bare", of_hold(HoldAct::Extend, Refusal::HoldExpired, None)),
        ("fence", of_hold(HoldAct::Release, Refusal::StaleFence, None)),
        ("replaced", of_hold(HoldAct::Supersede, replaced, None)),
        ("released", of_hold(HoldAct::Cancel, Refusal::HoldReleased { superseded_by: None }, None)),
        ("confirmed", of_hold(HoldAct::Retake, Refusal::HoldConfirmed, None)),
        ("cancelled", of_hold(HoldAct::Cancel, Refusal::HoldCancelled, None)),
    ]
}

fn rest() -> Vec<(&'static str, Fact)> {
    let repeated = |origin| KeyRepeated { key: digest(1), count: 8, origin };
    let erased = BuyerErased { shop: ShopIx(1), buyer: digest(4), holds: 300, by: ActorIx(2) };
    let settings = Settings { success_key_hours: 1, refusal_key_seconds: 60, keys_max: 1_000 };
    vec![
        ("full", Fact::KeyRepeated(repeated(Some(digest(5))))),
        ("bare", Fact::KeyRepeated(repeated(None))),
        ("full", Fact::LossAccepted(LossAccepted { acknowledged: Seq(300), found: Seq(298) })),
        ("full", Fact::SettingsChanged(settings)),
        ("full", Fact::LogRestored(LogRestored { after: Seq(298) })),
        ("full", Fact::BuyerErased(erased)),
    ]
}

fn privates() -> Vec<(&'static str, Private)> {
    let full = Private {
        buyer: Some("cus_8812".into()),
        reference: Some("cart-817".into()),
        metadata: Some("{\"locale\":\"de\"}".into()),
        payment_ref: Some("pi_1".into()),
        reason: Some("rain".into()),
    };
    vec![
        ("full", full.clone()),
        ("buyer", Private { buyer: full.buyer, ..Private::default() }),
        ("bare", Private::default()),
    ]
}

fn fact_bytes(fact: &Fact) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_fact(fact, &mut bytes);
    bytes
}

fn private_bytes(private: &Private) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_private(0, private, &mut bytes);
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text takes more");
        text
    })
}

#[test]
fn every_kind_of_fact_has_the_bytes_that_old_logs_have() {
    let facts = samples();
    let facts = facts.iter().map(|(sample, fact)| (fact.kind(), *sample, fact_bytes(fact)));
    let privates = privates();
    let privates =
        privates.iter().map(|(sample, texts)| ("private", *sample, private_bytes(texts)));
    let mut lines = String::new();
    for (kind, sample, bytes) in facts.chain(privates) {
        writeln!(lines, "{LEVEL} {kind} {sample} {}", hex(&bytes)).unwrap();
    }
    compare_with(FILE, lines.trim_end(), "the format changed: old logs hold the second line");
}

/// Compares with what is checked in, line by line.
#[expect(clippy::disallowed_methods, reason = "a test that writes its own fixture when asked to")]
fn compare_with(file: &str, lines: &str, why: &str) {
    if std::env::var_os("NOONDROP_UPDATE").is_some() {
        std::fs::write(file, format!("{lines}\n")).expect("the golden file is writable");
    }
    let golden = std::fs::read_to_string(file).expect("the golden file is checked in");
    for (now, then) in lines.lines().zip(golden.lines()) {
        assert_eq!(now, then, "{why}");
    }
    assert_eq!(lines.lines().count(), golden.lines().count(), "a sample more or fewer");
}

#[test]
fn every_kind_of_fact_is_in_the_samples() {
    let mut kinds: Vec<&str> = samples().iter().map(|(_, fact)| fact.kind()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds.len(), 25, "a new kind of fact needs its golden bytes: {kinds:?}");
}

#[test]
fn what_was_written_is_read_back() {
    for (_, fact) in samples() {
        let row = decode_row(LEVEL, &fact_bytes(&fact), &[]).expect("a fact that was written");
        assert_eq!(row, [Entry::from(fact.clone())]);
        for (_, private) in privates() {
            let row = decode_row(LEVEL, &fact_bytes(&fact), &private_bytes(&private)).unwrap();
            assert_eq!(row, [Entry { fact: fact.clone(), private: Some(private) }]);
        }
    }
}

#[test]
fn a_higher_level_is_refused() {
    let bytes = fact_bytes(&samples()[0].1);
    assert_eq!(decode_row(LEVEL + 1, &bytes, &[]), Err(CodecError::Level(LEVEL + 1)));
}

#[test]
fn an_unknown_kind_is_refused() {
    // [99, []], [18, ...] with another number, and things that are no fact at all.
    for bytes in
        [&[0x82, 0x18, 99, 0x80][..], &[0x82, 22, 0x81, 0x80], &[0], &[0xf6], &[0x80], &[0xa0]]
    {
        assert_eq!(decode_row(LEVEL, bytes, &[]), Err(CodecError::Malformed), "{bytes:x?}");
    }
    assert_eq!(
        decode_row(LEVEL, &[], &private_bytes(&Private::default())),
        Err(CodecError::Malformed)
    );
}

/// Whatever is taken comes back byte for byte: nothing in it was passed over.
fn is_taken(bytes: &[u8]) -> bool {
    let Ok(row) = decode_row(LEVEL, bytes, &[]) else {
        return false;
    };
    let again: Vec<u8> = row.iter().flat_map(|entry| fact_bytes(&entry.fact)).collect();
    assert_eq!(hex(&again), hex(bytes), "something was skipped");
    true
}

#[test]
fn a_fact_that_ends_early_is_refused() {
    for (sample, fact) in samples() {
        let bytes = fact_bytes(&fact);
        for end in 1..bytes.len() {
            assert!(!is_taken(&bytes[..end]), "{} {sample} up to {end}", fact.kind());
        }
    }
    let (fact, texts) = (fact_bytes(&samples()[1].1), private_bytes(&privates()[0].1));
    for end in 1..texts.len() {
        assert!(decode_row(LEVEL, &fact, &texts[..end]).is_err(), "private texts up to {end}");
    }
}

/// Where the arrays and maps of a CBOR item begin and end: (start, end of its head, length, end).
fn containers(bytes: &[u8], at: usize, found: &mut Vec<(usize, usize, u64, usize)>) -> usize {
    let (major, short) = (bytes[at] >> 5, bytes[at] & 31);
    let wide = match short {
        0..=23 => 0,
        24..=27 => 1 << (short - 24),
        _ => panic!("the writer uses definite lengths"),
    };
    let head = at + 1 + wide;
    let value = if wide == 0 {
        u64::from(short)
    } else {
        bytes[at + 1..head].iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
    };
    match major {
        2 | 3 => head + usize::try_from(value).expect("the samples are short"),
        4 | 5 => {
            let items = if major == 4 { value } else { value * 2 };
            let end = (0..items).fold(head, |at, _| containers(bytes, at, found));
            found.push((at, head, value, end));
            end
        }
        _ => head,
    }
}

/// An array or map with one more member at its end.
fn with_one_more(bytes: &[u8], found: (usize, usize, u64, usize), more: &[u8]) -> Vec<u8> {
    let (start, head, length, end) = found;
    assert!(length < 23, "the samples are short");
    let mut longer = bytes[..start].to_vec();
    longer.push(bytes[start] + 1);
    longer.extend_from_slice(&bytes[head..end]);
    longer.extend_from_slice(more);
    longer.extend_from_slice(&bytes[end..]);
    longer
}

/// An unknown field at the end of every array and map of every fact, however deep.
#[test]
fn an_unknown_field_anywhere_is_refused() {
    let mut tried = 0;
    let mut taken = Vec::new();
    for (sample, fact) in samples() {
        let bytes = fact_bytes(&fact);
        let mut found = Vec::new();
        assert_eq!(containers(&bytes, 0, &mut found), bytes.len());
        for place in found {
            let is_map = bytes[place.0] >> 5 == 5;
            let unknown: &[&[u8]] = if is_map {
                &[&[0x18, 99, 7], &[0x18, 99, 0xf6]]
            } else {
                &[&[7], &[0xf6], &[0x18, 200], &[0x61, b'x'], &[0x80], &[0x81, 0x82, 1, 1]]
            };
            for more in unknown {
                tried += 1;
                let longer = with_one_more(&bytes, place, more);
                if is_taken(&longer) {
                    taken.push(format!("{} {sample} at {}: {more:x?}", fact.kind(), place.0));
                }
            }
        }
    }
    assert!(tried > 500, "{tried}");
    // One name or pool more in a list of them, and the first value of a last field that may be absent.
    compare_with(OPEN_ENDS, &taken.join("\n"), "a field is taken where none was before");
}

#[test]
fn a_changed_byte_is_refused_or_means_something_else() {
    for (_, fact) in samples() {
        let bytes = fact_bytes(&fact);
        for at in 0..bytes.len() {
            for change in [1, 2, 0x20, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                is_taken(&changed);
            }
        }
    }
}
