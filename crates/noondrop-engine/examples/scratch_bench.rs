use noondrop_core::*;
use noondrop_engine::*;
use noondrop_log::Log;
use noondrop_log::memory::SharedMemory;
use noondrop_log::sqlite::{SqliteLog, SqliteOptions};
use std::time::Instant;
fn name(t: &str) -> Name {
    Name::parse(t).unwrap()
}
fn cmd(d: &Digester, key: Option<&str>, act: Act) -> Command {
    let scope = KeyScope { shop: "main", principal: "b", operation: act.operation(), target: "" };
    let key = key.map(|k| KeyUse { hash: d.key(scope, k), fingerprint: act.fingerprint() });
    Command {
        shop: name("main"),
        actor: Actor::Principal { name: name("b"), role: Role::Admin },
        key,
        origin: None,
        act,
    }
}
fn main() {
    let batch: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let total: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    let mem = std::env::args().nth(3).as_deref() == Some("mem");
    let threads: usize = std::env::args().nth(4).map_or(1, |t| t.parse().unwrap());
    let dir = tempfile::tempdir_in("/work").unwrap();
    let log: Box<dyn Log> = if mem {
        Box::new(SharedMemory::new().log())
    } else {
        Box::new(SqliteLog::open(SqliteOptions::new(dir.path().join("l.db"))).unwrap())
    };
    let e = Engine::start(log, EngineOptions::default()).unwrap();
    let h = e.handle();
    let d = h.digester();
    let terms = SaleTerms {
        title: "x".into(),
        opens_at: None,
        closes_at: None,
        hold_seconds: 600,
        hold_seconds_max: 600,
        hold_chain_seconds_max: 900,
        extensions_max: 2,
        live_holds_per_buyer: None,
        limits: vec![],
    };
    for a in [
        Act::SalePut(SalePut { sale: name("s"), terms, if_version: None }),
        Act::ItemPut(ItemPut {
            sale: name("s"),
            item: name("i"),
            total: 900_000_000,
            oversell_limit: 0,
            if_version: None,
        }),
        Act::SaleMove(SaleMove { sale: name("s"), to: SaleStep::Publish }),
    ] {
        h.execute_blocking(cmd(&d, None, a).into()).unwrap();
    }
    let mk = |t: usize, n: usize| -> Vec<Call> {
        (0..n)
            .map(|i| {
                let b = format!("c{t}-{i}");
                cmd(
                    &d,
                    Some(&b),
                    Act::HoldCreate(HoldCreate {
                        sale: name("s"),
                        buyer: d.digested_buyer("main", &b),
                        reference: None,
                        lines: [LineAsked { item: name("i"), quantity: 1 }].into_iter().collect(),
                        ttl_seconds: None,
                        metadata: None,
                        supersedes: None,
                        retake: None,
                        confirm: None,
                    }),
                )
                .into()
            })
            .collect()
    };
    let mut work: Vec<Vec<Vec<Call>>> = (0..threads)
        .map(|t| {
            let mut all = mk(t, total / threads);
            let mut v = vec![];
            while !all.is_empty() {
                let rest = all.split_off(batch.min(all.len()));
                v.push(all);
                all = rest;
            }
            v
        })
        .collect();
    println!(
        "sizes: Pending {} Answered {} Command {} Outcome {}",
        size_of::<Pending>(),
        size_of::<Answered>(),
        size_of::<Command>(),
        size_of::<Outcome>()
    );
    let t0 = Instant::now();
    std::thread::scope(|s| {
        for w in work.drain(..) {
            let h = h.clone();
            s.spawn(move || {
                let keep: Vec<u8> = Vec::new();
                for b in w {
                    let r = h.execute_many_blocking(b);
                    assert!(r[0].is_ok());
                    drop(r);
                }
                std::mem::forget(keep);
            });
        }
    });
    let el = t0.elapsed();
    let st = h.status();
    println!(
        "batch {batch}: {:.0}/s  turns {} turn_us avg {:.1}",
        total as f64 / el.as_secs_f64(),
        st.tally.turns,
        st.tally.turn_us.sum as f64 / st.tally.turns as f64
    );
    println!("{:?}", st.tally.turn_us.counts);
    println!(
        "per command in turn: {:.3}us; row bytes/cmd {:.1}; live {}",
        st.tally.turn_us.sum as f64 / total as f64,
        st.tally.row_bytes as f64 / total as f64,
        st.counters.live_holds
    );
    e.stop().unwrap();
}
