//! What the control task does by itself: it keeps pools whole, looks after their drives, and begins both when every shard is there.

use std::rc::Rc;

use tier0_units::Nanos;
use tier0_world::IoError;

use crate::Control;
use crate::message::command::ShardCommand;

/// How long to wait before what could not be rebuilt is tried again.
const RETRY_PAUSE: Nanos = Nanos::from_secs(10);
/// How often drives are looked at.
const LOOK: Nanos = Nanos::from_secs(1);
/// The same while a pool is paused: hosts wait for the end.
const LOOK_PAUSED: Nanos = Nanos::from_millis(100);

impl Control {
    /// All shards are there: rebuilds and scrubs may begin, or go on.
    pub fn begin_upkeep(self: &Rc<Self>) {
        self.context.upkeep.set(true);
        self.context.world.spawn(self.repair.clone().watch_witness()).detach();
        self.context.world.spawn(self.membership.clone().watch_damaged_drives()).detach();
        for number in 0..self.context.pools.len() {
            self.context.world.spawn(self.clone().begin_upkeep_of(number)).detach();
            self.context.world.spawn(self.clone().keep_rebuilding(number)).detach();
            self.context.world.spawn(self.clone().watch_drives(number)).detach();
            self.context.world.spawn(self.membership.clone().keep_heartbeat(number)).detach();
            self.context.world.spawn(self.tiering.clone().keep_tiering(number)).detach();
            self.context.world.spawn(self.tiering.clone().keep_homing(number)).detach();
            // What others write to shows on files and devices alone.
            if self.membership.opener.is_some() {
                self.context.world.spawn(self.membership.clone().watch_fronts(number)).detach();
                self.context.world.spawn(self.repair.clone().watch_lost_pages(number)).detach();
            }
        }
    }

    async fn begin_upkeep_of(self: Rc<Self>, number: usize) {
        // Drives that were lost while shards started.
        for member in self.context.pool(number).lost_members() {
            self.caches.drop_log_copies(number, member).await;
            self.caches.drop_flash_cache(number, member).await;
        }
        self.caches.begin_flash_cache(number);
        let core = self.repair.core(number);
        core.unverified.resume(&core.metadata.state());
        if let Err(error) = self.repair.finish_rejoins(number).await {
            tracing::error!("the old place of a drive cannot be forgotten: {error}");
        }
        self.repair.start_rebuilds(number);
        self.repair.resume_scrub(number);
        self.balance.resume_restripe(number);
        self.context.ask_all(|reply| ShardCommand::ScrubReplayed { pool: number, reply }).await;
    }

    /// Carries out the rebuilds that are wanted ([`crate::repair::Repair::start_rebuilds`]), and what comes with them: columns that
    /// move, copies of the log, members that are forgotten, sets that are formed.
    async fn keep_rebuilding(self: Rc<Self>, number: usize) {
        let repair = self.repair.core(number);
        loop {
            repair.rebuild.until_wanted().await;
            let _alone = self.balance.hold_extents(number).await;
            loop {
                repair.rebuild.again.set(false);
                let result = self.rebuild_round(number).await;
                repair
                    .rebuild
                    .waits
                    .set(result.as_ref().err().copied().filter(|error| *error != IoError::Gone));
                match result {
                    Ok(moved) => {
                        if !self.membership.core(number).due_returns().is_empty() {
                            continue;
                        }
                        self.membership.forget_leaving(number).await;
                        if moved > 0 || repair.rebuild.again.get() {
                            continue;
                        }
                        self.balance.form_sets_to_come(number).await;
                        if !repair.rebuild.again.get() {
                            break;
                        }
                    }
                    Err(_) if repair.rebuild.again.get() => {}
                    Err(error) => {
                        tracing::warn!("the rebuild of pool {:?} waits: {error}", repair.name);
                        self.context.world.sleep(RETRY_PAUSE).await;
                    }
                }
            }
            repair.rebuild.end();
            self.balance.look_at_rebuild(number);
            self.balance.tell_misplaced(number);
            self.repair.scrub_if_due(number);
            // Those that lacked a column when the array started.
            self.context.ask_all(|reply| ShardCommand::ScrubReplayed { pool: number, reply }).await;
        }
    }

    /// One round: columns return, the log gets its copies, then spares for what has none, then every column that has one, then
    /// those that are to lie elsewhere; how many of the last have begun to move.
    async fn rebuild_round(&self, number: usize) -> Result<u64, IoError> {
        let returned = self.membership.resume_returns(number).await;
        let log = self.caches.restore_log(number).await;
        let rebuilt = self.rebuild_all(number).await;
        returned.and(log).and(rebuilt)
    }

    async fn rebuild_all(&self, number: usize) -> Result<u64, IoError> {
        // What got none now may find room in the metadata when others are rebuilt.
        let assigned = self.repair.assign_spares(number).await;
        if assigned.is_ok() {
            self.balance.tell_misplaced(number);
        }
        let columns = self.repair.core(number).columns_to_rebuild();
        let (reason, moves) = self.balance.next_column_moves(number);
        self.balance.core(number).move_reason.set(reason);
        if !columns.is_empty() || !moves.is_empty() {
            // Its end may come before the task looks.
            self.balance.look_at_rebuild(number);
        }
        // What is lost comes first.
        self.repair.rebuild_columns(number, columns, &moves, assigned).await?;
        self.balance.move_columns(number, moves).await
    }

    /// Tells of a pool's drives while its shards start: what the log has is written to its places then, and a drive that
    /// takes no write holds up the start.
    pub async fn watch_starting_drives(self: Rc<Self>, number: usize) {
        while !self.context.upkeep.get() {
            self.repair.look_at_drives(number);
            self.context.world.sleep(LOOK).await;
        }
    }

    /// Looks after a pool's drives as long as the array runs.
    async fn watch_drives(self: Rc<Self>, number: usize) {
        let pauses = &self.context.pool(number).pauses;
        if !pauses.has_guards() {
            return;
        }
        loop {
            let paused = pauses.since().is_some();
            self.context.world.sleep(if paused { LOOK_PAUSED } else { LOOK }).await;
            self.repair.look_at_drives(number);
            self.repair.end_waits(number);
            self.repair.refuse_as_due(number).await;
            self.context.look_at_turns();
            self.space.look_at_space(number).await;
            self.balance.look_at_rebuild(number);
        }
    }
}
