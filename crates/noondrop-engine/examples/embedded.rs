//! Sells without HTTP: a log in a SQLite file, a sale with one item, a hold, the same hold again, a
//! confirm.
//!
//! `cargo run -p noondrop-engine --example embedded`

use std::error::Error;

use noondrop_core::{
    Act, Actor, Command, Digested, HoldConfirm, HoldCreate, ItemPut, KeyScope, KeyUse, LineAsked,
    Name, Outcome, Role, SaleMove, SalePut, SaleStep, SaleTerms,
};
use noondrop_engine::{Engine, EngineOptions, Handle, Reply};
use noondrop_log::sqlite::{SqliteLog, SqliteOptions};

fn ask(engine: &Handle, key: Option<&str>, act: Act) -> Result<Reply, Box<dyn Error>> {
    let scope =
        KeyScope { shop: "main", principal: "box-office", operation: act.operation(), target: "" };
    let key = key.map(|key| KeyUse {
        hash: engine.digester().key(scope, key),
        fingerprint: act.fingerprint(),
    });
    let actor = Actor::Principal { name: Name::parse("box-office")?, role: Role::Admin };
    let command = Command { shop: Name::parse("main")?, actor, key, origin: None, act };
    Ok(engine.execute_blocking(command.into())?)
}

/// Opens a log, sells a ticket, and closes the log again.
pub fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let log = SqliteLog::open(SqliteOptions::new(directory.path().join("noondrop.db")))?;
    let engine = Engine::start(Box::new(log), EngineOptions::default())?;
    let (handle, digester) = (engine.handle(), engine.handle().digester());

    let (sale, item) = (Name::parse("noon")?, Name::parse("floor")?);
    let terms = SaleTerms {
        title: "One night only".into(),
        opens_at: None,
        closes_at: None,
        hold_seconds: 300,
        hold_seconds_max: 600,
        hold_chain_seconds_max: 900,
        extensions_max: 2,
        live_holds_per_buyer: None,
        limits: Vec::new(),
        returns_to: None,
    };
    ask(&handle, None, Act::SalePut(SalePut { sale: sale.clone(), terms, if_version: None }))?;
    let pool = ItemPut {
        sale: sale.clone(),
        item: item.clone(),
        total: Some(500),
        oversell_limit: 0,
        if_version: None,
        seats: None,
        counts_against: None,
    };
    ask(&handle, None, Act::ItemPut(pool))?;
    ask(&handle, None, Act::SaleMove(SaleMove { sale: sale.clone(), to: SaleStep::Publish }))?;

    let create = HoldCreate {
        sale,
        buyer: digester.digested_buyer("main", "cus_8812"),
        reference: None,
        lines: [LineAsked::units(item, 2)].into_iter().collect(),
        ttl_seconds: None,
        metadata: None,
        supersedes: None,
        retake: None,
        confirm: None,
        overriding: None,
    };
    let first = ask(&handle, Some("cart-817"), Act::HoldCreate(create.clone()))?;
    let again = ask(&handle, Some("cart-817"), Act::HoldCreate(create))?;
    assert!(again.replayed && again.outcome == first.outcome, "one key, one outcome");
    let Outcome::Hold(hold) = first.outcome else { return Err("the hold was refused".into()) };
    println!(
        "{} holds 2 of floor until {} (position {})",
        hold.id, hold.expires_at, first.position
    );

    let text = String::from("pi_3Nx");
    let payment_ref = Digested { digest: digester.payment("main", &text), text };
    let confirm = HoldConfirm { hold: hold.id, fence: hold.fence, payment_ref };
    let confirmed = ask(&handle, None, Act::HoldConfirm(confirm))?;
    println!("confirmed, durable at position {}", confirmed.position);

    let floor = handle.query_blocking(|state, _now| state.item("main", "noon", "floor"))?;
    let counts = floor.value.ok_or("the item is there")?.counts;
    println!("floor: {} sold, {} available of {}", counts.sold, counts.available(), counts.total);
    Ok(engine.stop()?)
}
