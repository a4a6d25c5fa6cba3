//! A bug in one command is that command's fault alone.

use noondrop_core::{Act, Command};
use noondrop_engine::{EngineOptions, Fault, Probe};

use crate::support::{World, counts, sum};

fn is_cursed(command: &Command) -> bool {
    matches!(&command.act, Act::HoldCreate(act) if act.buyer.text == "cursed")
}

fn panic_if_cursed(command: &Command) {
    assert!(!is_cursed(command), "a planted bug");
}

fn one_fault_among_replies(probe: Probe) {
    let mut world = World::with(10, EngineOptions { probe, ..EngineOptions::default() });
    let before = counts(world.state()).held;
    let shop = world.shop.clone();
    let commands = ["ann", "cursed", "bob", "cursed", "eve"].iter().enumerate();
    let commands = commands.map(|(n, buyer)| shop.hold(&format!("k{n}"), buyer)).collect();
    let mut answers = world.turn(commands);
    answers.extend(world.settle());
    assert_eq!(answers.len(), 5, "everyone is answered");
    for (ticket, answer) in answers {
        let cursed = matches!(ticket - 3, 1 | 3);
        match answer {
            Ok(_) => assert!(!cursed, "{ticket}"),
            Err(Fault::Internal(_)) => assert!(cursed, "{ticket}"),
            Err(other) => panic!("{ticket}: {other}"),
        }
    }
    assert_eq!(counts(world.state()).held, before + 3);
    let healthy = sum(world.state());
    world.turn(vec![shop.hold("k9", "cursed")]);
    assert_eq!(sum(world.state()), healthy, "nothing bad is left behind");
    world.check();
}

#[test]
fn a_panic_while_deciding_is_one_commands_fault() {
    one_fault_among_replies(Probe { before_decide: Some(panic_if_cursed), ..Probe::default() });
}

#[test]
fn a_panic_while_applying_is_one_commands_fault() {
    one_fault_among_replies(Probe { before_apply: Some(panic_if_cursed), ..Probe::default() });
}

#[test]
fn a_broken_invariant_is_the_culprits_fault_and_is_never_logged() {
    one_fault_among_replies(Probe { violates: Some(is_cursed), ..Probe::default() });
}
