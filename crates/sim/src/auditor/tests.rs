//! The auditor's judgements, case by case.

use super::*;

const SECTORS: u64 = 64;

fn auditor(stable: bool) -> Auditor {
    Auditor::new(1, &[(SectorCount(SECTORS), stable), (SectorCount(SECTORS), stable)])
}

/// Begins a write of 4 sectors at sector 8; gives back its content.
fn begin(auditor: &mut Auditor) -> (WriteTicket, Vec<u8>) {
    let mut data = vec![0; 4 * 512];
    (auditor.begin_write(0, Lba(8), &mut data, |_| false), data)
}

fn write(auditor: &mut Auditor) -> Vec<u8> {
    let (ticket, data) = begin(auditor);
    auditor.end_write(ticket, true, false);
    data
}

fn read(auditor: &mut Auditor, data: &[u8]) -> Result<(), String> {
    let ticket = auditor.begin_read(0, Lba(8), 4);
    auditor.end_read(&ticket, data).map_err(|finding| finding.to_string())
}

fn flush(auditor: &mut Auditor) {
    let ticket = auditor.begin_flush(0);
    auditor.end_flush(ticket);
}

const ZEROS: [u8; 4 * 512] = [0; 4 * 512];

#[test]
fn an_acknowledged_write_is_what_is_read() {
    let mut auditor = auditor(true);
    assert_eq!(read(&mut auditor, &ZEROS), Ok(()));
    let first = write(&mut auditor);
    assert_eq!(read(&mut auditor, &first), Ok(()));
    let second = write(&mut auditor);
    assert_eq!(read(&mut auditor, &second), Ok(()));
    assert_eq!(
        read(&mut auditor, &first).unwrap_err(),
        "volume 0 sector 8: expected version 2, found version 1"
    );
    let mut torn = second.clone();
    torn[512..1024].fill(0);
    assert_eq!(read(&mut auditor, &torn).unwrap_err(), "volume 0 sector 9: expected version 2, found zeros");
    let mut moved = second.clone();
    moved.copy_within(512..1024, 0);
    assert!(read(&mut auditor, &moved).unwrap_err().ends_with("found version 2 of sector 9"));
    let mut rotten = second;
    rotten[700] ^= 1;
    assert!(read(&mut auditor, &rotten).unwrap_err().ends_with("found bytes that nobody wrote"));
}

#[test]
fn a_write_under_way_is_there_or_not_sector_by_sector_and_stays_once_it_was_seen() {
    for stable in [true, false] {
        let mut auditor = auditor(stable);
        let before = write(&mut auditor);
        flush(&mut auditor);
        let (_, after) = begin(&mut auditor);
        let mut torn = before.clone();
        torn[..512].copy_from_slice(&after[..512]);
        assert_eq!(read(&mut auditor, &after), Ok(()), "it is visible already");
        assert_eq!(read(&mut auditor, &torn), Ok(()), "it is still under way");
        auditor.crash();
        assert_eq!(read(&mut auditor, &torn), Ok(()));
        assert!(read(&mut auditor, &before).is_err(), "the first sector had changed");
        assert!(read(&mut auditor, &after).is_err(), "the others had not");
        auditor.crash();
        let kept = read(&mut auditor, &before).is_ok();
        assert_eq!(kept, !stable, "only a volatile cache may forget what was seen");
    }
}

#[test]
fn a_volatile_cache_may_forget_what_was_not_flushed() {
    let mut auditor = auditor(false);
    let first = write(&mut auditor);
    flush(&mut auditor);
    let second = write(&mut auditor);
    let third = write(&mut auditor);
    assert!(read(&mut auditor, &second).is_err(), "but not before a crash");
    auditor.crash();
    for (kept, data) in [(true, &first), (true, &second), (true, &third), (false, &ZEROS.to_vec())] {
        // What is seen stays: ask a copy.
        assert_eq!(read(&mut auditor.clone(), data).is_ok(), kept);
    }
    assert_eq!(read(&mut auditor, &second), Ok(()));
    flush(&mut auditor);
    auditor.crash();
    assert!(read(&mut auditor, &third).is_err(), "seen, then flushed");
}

#[test]
fn a_flush_covers_what_was_acknowledged_before_it_and_forced_unit_access_itself() {
    let mut auditor = auditor(false);
    let (early, _) = begin(&mut auditor);
    let flush = auditor.begin_flush(0);
    auditor.end_write(early, true, false);
    auditor.end_flush(flush);
    auditor.crash();
    assert_eq!(read(&mut auditor, &ZEROS), Ok(()), "it was acknowledged after the flush began");
    let (durable, data) = begin(&mut auditor);
    auditor.end_write(durable, true, true);
    auditor.crash();
    assert_eq!(read(&mut auditor, &data), Ok(()));
    assert!(read(&mut auditor, &ZEROS).is_err());
}

#[test]
fn a_read_may_find_what_came_and_went_while_it_was_under_way() {
    let mut auditor = auditor(true);
    write(&mut auditor);
    let ticket = auditor.begin_read(0, Lba(8), 4);
    let during = write(&mut auditor);
    write(&mut auditor);
    assert!(auditor.end_read(&ticket, &during).is_ok());
    assert!(read(&mut auditor, &during).is_err(), "but not afterwards");
}

#[test]
fn overlapping_writes_land_in_any_order_and_a_failed_one_perhaps() {
    let mut auditor = auditor(true);
    let (one, first) = begin(&mut auditor);
    let (two, second) = begin(&mut auditor);
    auditor.end_write(two, true, false);
    auditor.end_write(one, true, false);
    assert_eq!(read(&mut auditor, &first), Ok(()));
    assert!(read(&mut auditor, &second).is_err(), "it has been decided");
    let (failed, third) = begin(&mut auditor);
    auditor.end_write(failed, false, false);
    assert_eq!(read(&mut auditor, &third), Ok(()));
    assert!(read(&mut auditor, &first).is_err());
}

#[test]
fn discards_zero_whole_granules_and_pages_of_zeros_are_known() {
    let mut auditor = auditor(true);
    let written = write(&mut auditor);
    let discard = auditor.begin_discard(0, Lba(0), 10, 8);
    auditor.end_write(discard, true, false);
    assert_eq!(read(&mut auditor, &written), Ok(()), "sectors 8 and 9 are no whole granule");
    let discard = auditor.begin_discard(0, Lba(8), 8, 8);
    auditor.end_write(discard, true, false);
    assert_eq!(read(&mut auditor, &ZEROS), Ok(()));
    assert!(read(&mut auditor, &written).is_err());
    let mut data = vec![1; 16 * 512];
    let ticket = auditor.begin_write(0, Lba(0), &mut data, |page| page == 1);
    auditor.end_write(ticket, true, false);
    assert!(data[..8 * 512].iter().any(|byte| *byte != 0) && data[8 * 512..].iter().all(|byte| *byte == 0));
    assert_eq!(read(&mut auditor, &ZEROS), Ok(()));
}

#[test]
fn a_history_that_was_given_up_is_not_taken_for_the_other() {
    let mut kept = auditor(true);
    write(&mut kept);
    let mut given_up = kept.clone();
    let there = write(&mut given_up);
    let here = write(&mut kept);
    assert_eq!(read(&mut kept, &here), Ok(()));
    assert_eq!(
        read(&mut kept, &there).unwrap_err(),
        "volume 0 sector 8: expected version 3, found version 2"
    );
    let ticket = kept.begin_read(0, Lba(8), 4);
    write(&mut kept);
    assert!(kept.end_read(&ticket, &there).is_err(), "nor while something is written");
}
