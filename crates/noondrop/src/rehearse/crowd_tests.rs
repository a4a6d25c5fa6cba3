//! What buyers do next, with answers made by hand and a clock that the test moves.

use super::*;
use crate::time::steady;

fn plan(buyers: u32) -> Plan {
    Plan { buyers, duplicates: 0.0, abandon: 0.0, ..Plan::default() }
}

fn gathered(plan: &Plan) -> (Crowd, Instant) {
    let now = steady();
    let closes = now + Duration::from_secs(60);
    (Crowd::gather(plan, Times { now, opens: now, closes }), now + Duration::from_secs(1))
}

fn answer(status: u16, body: &str) -> Answer {
    Answer { status, body: body.as_bytes().to_vec(), ..Answer::default() }
}

fn held() -> Answer {
    let id = HOLD;
    answer(201, &format!("{{\"id\":\"{id}\",\"fence\":7}}"))
}

const HOLD: &str = "hold_00000000000000000000000000000";

/// A buyer with one device who keeps his connection.
fn plain() -> Plan {
    (0..1_000)
        .map(|seed| Plan { seed, ..plan(1) })
        .find(|plan| {
            let habits = Habits::of(plan, 0);
            !(habits.second_device || habits.loses_answer || habits.loses_receipt)
        })
        .unwrap()
}

#[test]
fn what_got_no_answer_is_sent_again_with_the_same_key() {
    let (mut crowd, now) = gathered(&plain());
    let first = crowd.take(now).unwrap();
    assert!(crowd.take(now).is_none());
    crowd.settle(first, None, now);
    let second = crowd.take(now + Duration::from_secs(1)).unwrap();
    assert_eq!((second.attempt, second.act), (first.attempt, first.act));
    assert_eq!(second.first_sent, first.first_sent);
}

#[test]
fn all_held_is_tried_again_with_a_new_key_and_sold_out_is_not() {
    let (mut crowd, now) = gathered(&plain());
    let first = crowd.take(now).unwrap();
    let busy = Answer { retry_after_seconds: Some(2), ..answer(409, "{\"code\":\"all_held\"}") };
    crowd.settle(first, Some(&busy), now);
    assert!(crowd.take(now + Duration::from_millis(1_999)).is_none());
    let later = now + Duration::from_secs(3);
    let second = crowd.take(later).unwrap();
    assert_eq!(second.attempt, first.attempt + 1);
    crowd.settle(second, Some(&answer(409, "{\"code\":\"sold_out\"}")), later);
    assert!(crowd.is_over());
    assert_eq!((crowd.tally.attempts, crowd.tally.gave_up), (2, 0));
}

#[test]
fn a_hold_is_paid_and_one_that_lapsed_is_tried_for_again() {
    let (mut crowd, now) = gathered(&plain());
    let press = crowd.take(now).unwrap();
    crowd.settle(press, Some(&held()), now);
    let now = now + Duration::from_secs(1);
    let pay = crowd.take(now).unwrap();
    assert_eq!(pay.act, Act::Pay(0));
    crowd.settle(pay, Some(&answer(409, "{\"code\":\"hold_expired\"}")), now);
    let now = now + Duration::from_secs(1);
    let press = crowd.take(now).unwrap();
    assert_eq!((press.act, press.attempt), (Act::Press, 1));
    crowd.settle(press, Some(&held()), now);
    let now = now + Duration::from_secs(1);
    let pay = crowd.take(now).unwrap();
    crowd.settle(pay, Some(&answer(200, "{}")), now);
    assert!(crowd.is_over());
    assert_eq!(crowd.record.confirmed(), 1);
    assert!(crowd.record.promise(1).confirmed);
}

#[test]
fn an_answer_that_nobody_should_get_is_remembered() {
    for (status, body) in [
        (400, "{\"code\":\"invalid_field\"}"),
        (404, "{\"code\":\"sale_not_found\"}"),
        (500, "oops"),
    ] {
        let (mut crowd, now) = gathered(&plain());
        let press = crowd.take(now).unwrap();
        crowd.settle(press, Some(&answer(status, body)), now);
        assert_eq!(crowd.record.surprises().len(), 1, "{body}");
    }
}

#[test]
fn payments_and_repeats_go_before_new_attempts() {
    let (mut crowd, now) = gathered(&plan(20));
    let first = crowd.take(now).unwrap();
    crowd.settle(first, None, now);
    let next = crowd.take(now + Duration::from_secs(1)).unwrap();
    assert_eq!((next.buyer, next.act), (first.buyer, first.act));
}

#[test]
fn the_same_seed_makes_the_same_crowd() {
    let order = |seed| {
        let (mut crowd, now) = gathered(&Plan { seed, ..plan(200) });
        std::iter::from_fn(|| crowd.take(now)).map(|errand| errand.buyer).collect::<Vec<_>>()
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
}
