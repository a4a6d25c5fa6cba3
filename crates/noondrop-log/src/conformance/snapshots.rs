//! What a start relies on: a snapshot is there whole, or it is not there.

use std::io::{self, Read};
use std::sync::Arc;

use super::{Subject, Verdict, ensure, ensure_equal, list_checks};
use crate::{Position, SnapshotMeta, Snapshots};

list_checks!(
    a_snapshot_comes_back_as_it_was_written,
    snapshots_are_listed_newest_first,
    a_snapshot_replaces_one_of_the_same_position,
    a_failed_write_leaves_nothing_behind,
    a_damaged_snapshot_is_never_handed_out,
    the_newest_whole_snapshot_is_found,
    pruning_keeps_the_newest,
    snapshots_survive_reopening,
);

fn snapshots_of(subject: &dyn Subject) -> Arc<dyn Snapshots> {
    subject.open().opener().snapshots()
}

fn meta(seq: u64, bytes: usize) -> SnapshotMeta {
    let [first, ..] = seq.to_le_bytes();
    let position = Position { seq, digest: [first; 32] };
    SnapshotMeta { position, level: 3, state_sum: [first ^ 0xff; 16], bytes: bytes as u64 }
}

fn write(
    snapshots: &dyn Snapshots,
    seq: u64,
    payload: &[u8],
) -> Result<SnapshotMeta, crate::LogError> {
    let meta = meta(seq, payload.len());
    snapshots.write(&meta, &mut |out| out.write_all(payload))?;
    Ok(meta)
}

fn read(mut payload: Box<dyn Read + Send>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    payload.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn a_snapshot_comes_back_as_it_was_written(subject: &dyn Subject) -> Verdict {
    let snapshots = snapshots_of(subject);
    ensure_equal("list", &snapshots.list()?, &Vec::new())?;
    // Empty, small, and larger than one piece of bulk writing.
    for (seq, size) in [(1, 0), (2, 5), (3, (2 << 20) + 17)] {
        let payload: Vec<u8> = (0..size).map(|i: usize| i.to_le_bytes()[0] ^ 0x5a).collect();
        let meta = write(&*snapshots, seq, &payload)?;
        ensure(snapshots.list()?.first() == Some(&meta), "the list has another meta")?;
        ensure(read(snapshots.open(&meta)?)? == payload, "the payload has changed")?;
    }
    Ok(())
}

fn snapshots_are_listed_newest_first(subject: &dyn Subject) -> Verdict {
    let snapshots = snapshots_of(subject);
    for seq in [20, 100, 3] {
        write(&*snapshots, seq, b"state")?;
    }
    ensure_equal("list", &snapshots.list()?, &vec![meta(100, 5), meta(20, 5), meta(3, 5)])
}

fn a_snapshot_replaces_one_of_the_same_position(subject: &dyn Subject) -> Verdict {
    let snapshots = snapshots_of(subject);
    write(&*snapshots, 1, b"first")?;
    let second = write(&*snapshots, 1, b"second one")?;
    ensure_equal("list", &snapshots.list()?, &vec![second])?;
    ensure_equal("payload", &read(snapshots.open(&second)?)?, &b"second one".to_vec())
}

fn a_failed_write_leaves_nothing_behind(subject: &dyn Subject) -> Verdict {
    let snapshots = snapshots_of(subject);
    let failed = snapshots.write(&meta(1, 5), &mut |out| {
        out.write_all(b"state")?;
        Err(io::Error::other("the builder gave up"))
    });
    ensure(failed.is_err(), "a failed write was reported as done")?;
    ensure_equal("list", &snapshots.list()?, &Vec::new())?;
    ensure(snapshots.open(&meta(1, 5)).is_err(), "half a snapshot was opened")
}

fn a_damaged_snapshot_is_never_handed_out(subject: &dyn Subject) -> Verdict {
    let snapshots = snapshots_of(subject);
    // In the header, in the payload, in the trailer.
    for at in [0, 3, 40, 70, 77, 90, 1_085, 1_090, 1_100, 1_115] {
        let meta = write(&*snapshots, 1, &[7; 1_000])?;
        subject.damage_snapshot(&meta, at);
        let listed = snapshots.list()?.contains(&meta);
        match snapshots.open(&meta) {
            Ok(_) => return Err(format!("opened in spite of damage at byte {at}").into()),
            Err(error) if listed => ensure(error.is_damaged(), "damage is not named as such")?,
            Err(_) => {}
        }
    }
    Ok(())
}

fn the_newest_whole_snapshot_is_found(subject: &dyn Subject) -> Verdict {
    let snapshots = snapshots_of(subject);
    for seq in 1..=4 {
        write(&*snapshots, seq, b"state")?;
    }
    subject.damage_snapshot(&meta(4, 5), 2);
    subject.damage_snapshot(&meta(3, 5), 78);
    let found = snapshots.open_newest(&mut |_| true)?.map(|(meta, _)| meta);
    ensure_equal("newest whole", &found, &Some(meta(2, 5)))?;
    let found = snapshots.open_newest(&mut |meta| meta.position.seq < 2)?.map(|(meta, _)| meta);
    ensure_equal("newest wanted", &found, &Some(meta(1, 5)))?;
    ensure(snapshots.open_newest(&mut |_| false)?.is_none(), "an unwanted one was opened")
}

fn pruning_keeps_the_newest(subject: &dyn Subject) -> Verdict {
    let snapshots = snapshots_of(subject);
    for seq in 1..=5 {
        write(&*snapshots, seq, b"state")?;
    }
    // One that can not be used must not take the place of one that can.
    subject.damage_snapshot(&meta(5, 5), 2);
    snapshots.prune(2, &mut |_| true)?;
    ensure_equal("list", &snapshots.list()?, &vec![meta(4, 5), meta(3, 5)])?;
    // Nor one of a history that the log lost.
    snapshots.prune(1, &mut |meta| meta.position.seq < 4)?;
    ensure_equal("list", &snapshots.list()?, &vec![meta(3, 5)])?;
    snapshots.prune(0, &mut |_| true)?;
    ensure_equal("list", &snapshots.list()?, &Vec::new())
}

fn snapshots_survive_reopening(subject: &dyn Subject) -> Verdict {
    let written = write(&*snapshots_of(subject), 1, b"state")?;
    let snapshots = snapshots_of(subject);
    ensure_equal("payload", &read(snapshots.open(&written)?)?, &b"state".to_vec())
}
