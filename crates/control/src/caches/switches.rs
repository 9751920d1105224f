//! Caches switched while the array serves: the write and the read cache of a volume, and both for all volumes of a pool.
//!
//! A write cache that is switched off is empty when the answer comes: what was acknowledged from it lies in its place then.
//! Hosts are told of a laxer promise before it holds, and of a stricter one when every shard keeps it.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::join_all;
use tier0_pool::{CacheSwitches, Caching, MetaRecord};
use tier0_units::{WriteCache, named};
use tier0_world::IoError;
use tier0_world::sync::{MailSender, oneshot};

use super::Caches;
use crate::admin::AdminError;
use crate::context::Done;
use crate::message::command::{CachingChange, ShardCommand};
use crate::message::request::ShardRequest;
use crate::volumes::lifecycle::Meant;

/// Caches of a pool that are switched, and may not be empty yet.
struct Switched {
    pool: usize,
    changes: Arc<[CachingChange]>,
    /// What each shard will say when that has come to its end.
    answers: Vec<oneshot::Receiver<Result<(), IoError>>>,
}

impl Caches {
    /// Switches the caches of a volume, as far as something is said.
    pub(crate) async fn set_volume_cache(
        self: &Rc<Self>,
        name: &str,
        read: Option<bool>,
        write: Option<WriteCache>,
    ) -> Done {
        let what = said([
            read.map(|on| format!("read cache {}", on_or_off(on))),
            write.map(|mode| format!("write cache {mode}")),
        ])?;
        let turn = self.turn.acquire(1).await;
        let Meant { pool, record, number } = self.volumes.volume_meant(name)?;
        let records = MetaRecord::switch_caches(&record, read, write);
        let before = self.caching(pool).remove(&number);
        let is_change = !records.is_empty();
        let switched = self.switch_caches(pool, records, write.is_some().then_some(number)).await?;
        drop(turn);
        self.finish_switching(switched).await?;
        if !is_change {
            return Err(AdminError::unchanged(format!("volume {name}: {what} already; nothing changed")));
        }
        let when =
            self.when_it_counts(pool, read == Some(true), write.is_some_and(|mode| mode != WriteCache::Off));
        let stats = self.pool_stats(pool).await;
        let clients = stats.connections.iter().filter(|one| one.volume == name).count();
        let now = self.caching(pool).get(&number).map(|caching| caching.write);
        let told = told_before(before.map(|caching| caching.write), now, clients);
        Ok(format!("volume {name}: {what} {when}{told}"))
    }

    /// Switches the caches of all volumes of a pool, or of every pool where none is named.
    pub(crate) async fn set_pool_cache(
        self: &Rc<Self>,
        pool: Option<&str>,
        read: Option<bool>,
        write: Option<bool>,
    ) -> Done {
        let pools = self.pools_meant(pool)?;
        let told = said(
            [("read", read), ("write", write)]
                .map(|(cache, on)| on.map(|on| format!("{cache} cache {}", on_or_off(on)))),
        )?;
        let turn = self.turn.acquire(1).await;
        let (mut switched, mut is_change) = (Vec::new(), false);
        for pool in &pools {
            let now = self.core(*pool).metadata.state().cache_switches();
            let wanted = CacheSwitches { read: read.unwrap_or(now.read), write: write.unwrap_or(now.write) };
            is_change |= wanted != now;
            let records = (wanted != now).then_some(MetaRecord::PoolCacheChanged(wanted));
            let emptied = (write == Some(false)).then(|| self.caching(*pool).into_keys());
            let records = records.into_iter().collect();
            switched.push(self.switch_caches(*pool, records, emptied.into_iter().flatten()).await?);
        }
        drop(turn);
        for switched in switched {
            self.finish_switching(switched).await?;
        }
        let names: Vec<&str> = pools.iter().map(|pool| self.pools[*pool].name.as_str()).collect();
        if !is_change {
            let pools = named("pool", &names);
            return Err(AdminError::unchanged(format!("{pools}: {told} already; nothing changed")));
        }
        let own = match write {
            Some(true) => "; each volume uses its own write cache mode",
            _ => "",
        };
        Ok(format!("{}: {told} from now on{own}", named("pool", &names)))
    }

    /// Commits what switches caches of a pool, and has shards know, and hosts as far as it is laxer. What is in the write cache of
    /// volumes that have none any more goes into its place; of the `asked` ones also where they had none before, in case that
    /// failed. That may take long, so [`Caches::finish_switching`] waits for it, and others have their turn.
    async fn switch_caches(
        &self,
        pool: usize,
        records: Vec<MetaRecord>,
        asked: impl IntoIterator<Item = u32>,
    ) -> Result<Switched, AdminError> {
        let before = self.caching(pool);
        if !records.is_empty() {
            self.core(pool).metadata.commit(records).await.map_err(AdminError::from)?;
        }
        let asked: Vec<u32> = asked.into_iter().collect();
        let change = |(volume, caching): (u32, Caching)| {
            let known = before.get(&volume).copied();
            let settles = known.map(|known| known.write) != Some(caching.write) || asked.contains(&volume);
            (known != Some(caching) || settles).then_some(CachingChange { volume, caching, settles })
        };
        let changes: Arc<[CachingChange]> = self.caching(pool).into_iter().filter_map(change).collect();
        let is_volatile = |caching: &Caching| caching.write == WriteCache::Volatile;
        let was_volatile = |change: &&CachingChange| before.get(&change.volume).is_some_and(is_volatile);
        for change in changes.iter().filter(|change| is_volatile(&change.caching) && !was_volatile(change)) {
            self.volumes.offer_volume(change.volume).await?;
        }
        // Shards are told before others have their turn, so that they switch in the order of the commits.
        let tell = |shard: &MailSender<ShardRequest>| {
            let (reply, answer) = oneshot::channel();
            let changes = changes.clone();
            shard.send(ShardRequest::Command(ShardCommand::SetCaching { pool, changes, reply }));
            answer
        };
        let answers = self.shards.iter().map(tell).collect();
        Ok(Switched { pool, changes, answers })
    }

    /// Waits until caches that were switched are as they are to be, and has hosts know where that is stricter.
    async fn finish_switching(&self, switched: Switched) -> Result<(), AdminError> {
        let Switched { pool, changes, answers } = switched;
        for result in join_all(answers).await {
            result.unwrap_or(Err(IoError::Gone)).map_err(not_settled)?;
        }
        let _turn = self.turn.acquire(1).await;
        // Others may have switched them again meanwhile, or deleted the volume.
        let now = self.caching(pool);
        let stands = |change: &&CachingChange| now.get(&change.volume) == Some(&change.caching);
        for change in changes.iter().filter(|change| change.settles).filter(stands) {
            if change.caching.write != WriteCache::Volatile {
                self.volumes.offer_volume(change.volume).await?;
            }
        }
        Ok(())
    }

    /// How the volumes of a pool use the caches, by their numbers in the array.
    fn caching(&self, pool: usize) -> BTreeMap<u32, Caching> {
        let state = self.core(pool).metadata.state();
        let known = state
            .volumes()
            .filter_map(|volume| Some((self.volumes.number_of(pool, volume.number)?, state.caching(volume))));
        known.collect()
    }

    /// From when on it counts that a volume has caches on: its pool may have them off.
    fn when_it_counts(&self, pool: usize, read: bool, write: bool) -> String {
        let switches = self.core(pool).metadata.state().cache_switches();
        let off = [("read", read && !switches.read), ("write", write && !switches.write)];
        let off: Vec<&str> = off.into_iter().filter(|(_, off)| *off).map(|(cache, _)| cache).collect();
        match off[..] {
            [] => "from now on".to_owned(),
            _ => {
                let (name, caches) = (&self.pools[pool].name, off.join(" and "));
                format!("once the {caches} cache of pool {name} is on (tier0 pool set)")
            }
        }
    }
}

/// What the clients do that are connected, if they were told a mode that does not hold any more.
fn told_before(before: Option<WriteCache>, now: Option<WriteCache>, clients: usize) -> String {
    let is_volatile = |mode: WriteCache| mode == WriteCache::Volatile;
    let Some(before) =
        before.filter(|before| now.is_some_and(|now| is_volatile(*before) != is_volatile(now)))
    else {
        return String::new();
    };
    match clients {
        0 => String::new(),
        1 => format!("; the client that is connected keeps the old mode ({before}) until it reconnects"),
        _ => format!(
            "; the clients of {clients} connections keep the old mode ({before}) until they reconnect"
        ),
    }
}

/// What was asked for, as half a sentence.
fn said(parts: [Option<String>; 2]) -> Result<String, AdminError> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => Err(AdminError::new("no property given; set cache.read, cache.write or both")),
        false => Ok(parts.join(", ")),
    }
}

fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// The switches stand as they were asked for, and what was acknowledged before is not as stable as that promises.
fn not_settled(error: IoError) -> AdminError {
    AdminError::failed(format!(
        "the caches are switched, but the write cache could not be fully destaged: {error}; check \"tier0 \
         status\", and try again"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It was said of connected clients where none was connected.
    #[test]
    fn clients_are_told_of_where_there_are_some_and_the_mode_matters_to_them() {
        let told = |before, now, clients| told_before(Some(before), Some(now), clients);
        use WriteCache::{Durable, Off, Volatile};
        assert_eq!(told(Volatile, Durable, 0), "");
        assert!(
            told(Volatile, Durable, 1).contains("the client that is connected keeps the old mode (volatile)")
        );
        assert!(told(Durable, Volatile, 2).contains("2 connections keep the old mode (durable)"));
        assert_eq!(told(Durable, Off, 2), "");
        assert_eq!(told_before(None, Some(Off), 2), "");
    }
}
