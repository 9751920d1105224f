//! A user of the volumes: random requests, each told to the auditor before and after.

use std::rc::Rc;

use tier0_block::BlockTarget;
use tier0_units::{Lba, Nanos};
use tier0_world::{BufMut, IoError, PayloadWidth, Random};

use crate::config::{LoadOptions, Operation, log_uniform};
use crate::life::Life;
use crate::system::Running;

/// Works until all users together have done their operations.
pub(crate) async fn work<R: Running>(life: Rc<Life<R>>, number: u64) {
    let mut random = life.session.random(0x100 + number);
    let think = life.session.config.load.think.0 as f64;
    while life.begin_operation() {
        if let Err(sentence) = operate(&life, &mut random).await {
            return life.break_off(sentence);
        }
        life.world.sleep(Nanos(random.exponential(think) as u64)).await;
    }
}

async fn operate<R: Running>(life: &Rc<Life<R>>, random: &mut Random) -> Result<(), String> {
    let load = &life.session.config.load;
    let volume = random.below(life.volumes.len() as u64) as usize;
    let operation = draw_operation(load, random);
    let (lba, sectors) = draw_range(life, volume, random);
    match operation {
        Operation::Read => read(life, volume, lba, sectors).await,
        Operation::Write => {
            let durable = random.chance(load.durable_share);
            write(life, volume, lba, sectors, durable, random).await
        }
        Operation::WriteZeroes => {
            let durable = random.chance(load.durable_share);
            write_zeroes(life, volume, lba, sectors, random.chance(0.5), durable).await
        }
        Operation::Discard => discard(life, volume, lba, sectors).await,
        Operation::Flush => flush(life, volume).await,
    }
}

fn draw_operation(load: &LoadOptions, random: &mut Random) -> Operation {
    let mut ticket = random.below(load.weights.iter().sum());
    for (operation, weight) in Operation::ALL.into_iter().zip(load.weights) {
        if ticket < weight {
            return operation;
        }
        ticket -= weight;
    }
    unreachable!("the ticket is below the sum of the weights")
}

fn draw_range<R: Running>(life: &Life<R>, volume: usize, random: &mut Random) -> (Lba, u64) {
    let load = &life.session.config.load;
    let all = life.session.auditor.borrow().sectors(volume);
    let block = u64::from(life.volumes[volume].info().block_sectors);
    let unit = if random.chance(0.9) { load.alignment_sectors.max(block) } else { block };
    let sectors = log_uniform(1, load.sectors_max, random).next_multiple_of(unit).min(all);
    let span = if random.chance(load.hot_share) { load.hot_sectors.max(sectors).min(all) } else { all };
    let places = (span - sectors) / unit + 1;
    (Lba(random.below(places) * unit), sectors)
}

/// Reads and has the auditor judge.
pub(crate) async fn read<R: Running>(
    life: &Rc<Life<R>>,
    volume: usize,
    lba: Lba,
    sectors: u64,
) -> Result<(), String> {
    let session = &life.session;
    let _request = session.request(|| format!("read of volume {volume} at {lba}+{sectors}"));
    let began = life.world.now();
    let ticket = session.auditor.borrow().begin_read(volume, lba, sectors);
    let mut buf = life.world.buffer(sectors as u32);
    // A volume that forgets to fill it must not pass for one that read zeros.
    buf.as_mut_slice().fill(0xd5);
    let (result, buf) = life.volumes[volume].read(lba, buf).await;
    if let Err(error) = result {
        if excused(life, began) {
            return Ok(());
        }
        return Err(format!("volume {volume}: read of {sectors} sectors at {lba} fails: {error}"));
    }
    session.count("reads verified");
    let verdict = session.auditor.borrow_mut().end_read(&ticket, buf.as_slice());
    verdict.map_err(|finding| finding.to_string())
}

async fn write<R: Running>(
    life: &Rc<Life<R>>,
    volume: usize,
    lba: Lba,
    sectors: u64,
    durable: bool,
    random: &mut Random,
) -> Result<(), String> {
    let session = &life.session;
    let mut buf = BufMut::new(sectors as u32, PayloadWidth::REAL);
    let zero_share = session.config.load.zero_share;
    let ticket = session
        .auditor
        .borrow_mut()
        .begin_write(volume, lba, buf.as_mut_slice(), |_| zero_share > 0.0 && random.chance(zero_share));
    let _request = session.request(|| format!("write of volume {volume} at {lba}+{sectors}"));
    let began = life.world.now();
    let result = life.volumes[volume].write(lba, buf.freeze(), durable).await;
    session.auditor.borrow_mut().end_write(ticket, result.is_ok(), durable);
    judge(life, began, result, || format!("write of {sectors} sectors at {lba} of volume {volume}"))?;
    session.count("writes");
    Ok(())
}

async fn write_zeroes<R: Running>(
    life: &Rc<Life<R>>,
    volume: usize,
    lba: Lba,
    sectors: u64,
    may_discard: bool,
    durable: bool,
) -> Result<(), String> {
    let session = &life.session;
    let ticket = session.auditor.borrow_mut().begin_zeroes(volume, lba, sectors);
    let _request = session.request(|| format!("write of zeros to volume {volume} at {lba}+{sectors}"));
    let began = life.world.now();
    let result = life.volumes[volume].write_zeroes(lba, sectors, may_discard, durable).await;
    session.auditor.borrow_mut().end_write(ticket, result.is_ok(), durable);
    judge(life, began, result, || {
        format!("write of {sectors} sectors of zeros at {lba} of volume {volume}")
    })?;
    session.count("writes of zeros");
    Ok(())
}

/// Discards and tells the auditor.
pub(crate) async fn discard<R: Running>(
    life: &Rc<Life<R>>,
    volume: usize,
    lba: Lba,
    sectors: u64,
) -> Result<(), String> {
    let session = &life.session;
    let granule = session.config.discard_granule_sectors;
    let ticket = session.auditor.borrow_mut().begin_discard(volume, lba, sectors, granule);
    let _request = session.request(|| format!("discard of volume {volume} at {lba}+{sectors}"));
    let began = life.world.now();
    let result = life.volumes[volume].discard(lba, sectors).await;
    session.auditor.borrow_mut().end_write(ticket, result.is_ok(), false);
    if result.is_err() && excused(life, began) {
        return Ok(());
    }
    // Discards go on when the pool is full, but for those of a part of an extent that a clone has too.
    if result == Err(IoError::NoSpace) && session.config.mixture.clones {
        session.count("discards refused for want of space");
        return Ok(());
    }
    result
        .map_err(|error| format!("volume {volume}: discard of {sectors} sectors at {lba} fails: {error}"))?;
    session.count("discards");
    Ok(())
}

/// Flushes a volume and tells the auditor.
pub(crate) async fn flush<R: Running>(life: &Rc<Life<R>>, volume: usize) -> Result<(), String> {
    let session = &life.session;
    let ticket = session.auditor.borrow_mut().begin_flush(volume);
    let _request = session.request(|| format!("flush of volume {volume}"));
    let began = life.world.now();
    if let Err(error) = life.volumes[volume].flush().await {
        if excused(life, began) {
            return Ok(());
        }
        return Err(format!("volume {volume}: flush fails: {error}"));
    }
    session.auditor.borrow_mut().end_flush(ticket);
    session.count("flushes");
    Ok(())
}

/// Whether a request that began then may fail: drives were away for longer than the array must wait for them.
pub(crate) fn excused<R: Running>(life: &Life<R>, began: Nanos) -> bool {
    let excused = life.session.mishaps.excuse(began, life.world.now());
    if excused {
        life.session.count("requests refused in mishaps");
    } else {
        life.session
            .note(&life.world, format!("a request of {began} fails; {}", life.session.mishaps.describe()));
    }
    excused
}

/// A full pool is an excuse of a write, and a long mishap of anything.
fn judge<R: Running>(
    life: &Life<R>,
    began: Nanos,
    result: Result<(), IoError>,
    what: impl FnOnce() -> String,
) -> Result<(), String> {
    match result {
        Err(IoError::NoSpace) if life.session.config.load.may_run_out => {
            life.session.count("writes refused for want of space");
            Ok(())
        }
        Err(IoError::Gone) if life.running.may_lose_requests() => {
            life.session.count("writes lost with their connection");
            Ok(())
        }
        Err(_) if excused(life, began) => Ok(()),
        Err(error) => Err(format!("{} fails: {error}", what())),
        Ok(()) => Ok(()),
    }
}
