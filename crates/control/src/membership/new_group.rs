//! A group of sets that joins a pool with its drives: existing volumes get a tier by it, or somewhere to migrate to.
//!
//! All drives are opened and checked before anything is changed. Then the metadata know the group, its drives join one after
//! the other, and its first sets are formed ([`crate::balance::grow`]). What a failure leaves is a group that lacks drives or
//! sets: more drives can be added to it, and the pool grows by them.
//!
//! Until the next start its volumes share the first group's lane of the write log, and reads of it are not kept on flash.

use std::collections::BTreeSet;
use std::rc::Rc;

use tier0_api::GroupShape;
use tier0_description::is_name;
use tier0_description::shape::AskedShape;
use tier0_plan::{members_max, new_group};
use tier0_pool::{DriveClass, DriveRole, MetaRecord, PoolState, SetGroup};
use tier0_raid::layout::RaidConfig;
use tier0_units::{ByteCount, SECTOR_BYTES, counted};

use super::Membership;
use super::arrival::{NewPlace, Origin};
use super::join::Joining;
use super::opener::NewDrive;
use crate::admin::AdminError;
use crate::pool::not_written;

/// A group that is asked for.
pub(crate) struct NewGroup {
    pub(crate) name: String,
    /// The name that the pool's only group gets, if it has none.
    pub(crate) first_name: Option<String>,
    pub(crate) shape: GroupShape,
    pub(crate) drives: Vec<NewPlace>,
}

impl Membership {
    /// Adds a group to a pool, and its drives to the group; the pool's number and the group's.
    pub(crate) async fn add_group(
        self: &Rc<Self>,
        pool: Option<&str>,
        new: NewGroup,
    ) -> Result<(usize, u32), AdminError> {
        let number = self.pool_meant(pool)?;
        let _turn = self.turn.acquire(1).await;
        if let Some(name) = new.first_name.iter().chain([&new.name]).find(|name| !is_name(name)) {
            return Err(AdminError::new(format!(
                "{name:?} is no name of a group; use 1 to 64 letters, digits, '-', '_' or '.'"
            )));
        }
        let (raid, spare_drives) = asked(&new.shape)
            .of_drives(new.drives.len())
            .map_err(|error| AdminError::new(format!("group {:?}: {error}", new.name)))?;
        self.check_new_drives(number, &new)?;
        // What is wrong with the group is told before drives are opened, for which files may be made.
        self.records_of_group(number, &new, &raid, 0)?;
        let opened = self.open_all(number, &new.drives).await?;
        let spares = self.spare_chunklets(number, &new, &opened, spare_drives)?;
        let records = self.records_of_group(number, &new, &raid, spares)?;
        let group = self.check_members(number, &records, &new.drives, &opened)?;
        self.core(number).metadata.add_group(records).await?;
        let count = opened.len();
        for (joined, (place, drive)) in new.drives.iter().zip(opened).enumerate() {
            let brought = self.bring_in((number, group), &place.name, drive, Origin::New).await;
            brought.map_err(|error| {
                AdminError::failed(format!(
                    "group {:?} is in the pool with {joined} of its {}; drive {:?} has not joined: {error}; then add the \
                     others (tier0 drive add --group {}), and use them (tier0 pool grow)",
                    new.name,
                    counted(count as u64, "drive"),
                    place.name,
                    new.name
                ))
            })?;
        }
        self.are_for_data(number, group).await?;
        Ok((number, group))
    }

    /// The drives of a group, with their classes: "2 drives of class flash".
    pub(crate) fn drives_in_words(&self, number: usize, group: u32) -> String {
        let state = self.core(number).metadata.state();
        let own = state.members().iter().filter(|member| member.is_active() && member.group == group);
        let classes: Vec<DriveClass> = own.map(|member| member.class).collect();
        let distinct: BTreeSet<String> = classes.iter().map(DriveClass::to_string).collect();
        let distinct: Vec<String> = distinct.into_iter().collect();
        format!("{} of class {}", counted(classes.len() as u64, "drive"), distinct.join(" and "))
    }

    /// The drives of a group are for data, whatever else they are given before it has sets.
    async fn are_for_data(&self, number: usize, group: u32) -> Result<(), AdminError> {
        let core = self.core(number);
        let records: Vec<MetaRecord> = {
            let state = core.metadata.state();
            let own =
                state.members_by_place().filter(|(_, member)| member.is_active() && member.group == group);
            own.map(|(member, _)| MetaRecord::MemberRole { member, role: DriveRole::Data }).collect()
        };
        core.commit(records).await.map_err(not_written)
    }

    /// The new drives differ from each other, and the pool has room for them.
    fn check_new_drives(&self, number: usize, new: &NewGroup) -> Result<(), AdminError> {
        let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
        for drive in &new.drives {
            if !names.insert(&drive.name) || !paths.insert(&drive.path) {
                return Err(AdminError::new(format!(
                    "drive {:?} at {:?} is named twice, or lies where another one does; give each drive a name and a path of its \
                     own",
                    drive.name, drive.path
                )));
            }
        }
        let joined = self.core(number).metadata.state().members().len();
        if joined + new.drives.len() > self.pools[number].lost.room() {
            return Err(AdminError::new(format!(
                "{} cannot join now: the array has room for {} more that join before it is started again; start it again",
                counted(new.drives.len() as u64, "drive"),
                members_max(0).saturating_sub(joined),
            )));
        }
        Ok(())
    }

    /// The records that add the group, and that name the pool's only group if it has no name.
    fn records_of_group(
        &self,
        number: usize,
        new: &NewGroup,
        raid: &RaidConfig,
        spare_chunklets: u64,
    ) -> Result<Vec<MetaRecord>, AdminError> {
        let state = self.core(number).metadata.state();
        let group: SetGroup = new_group(&state, &new.name, raid, spare_chunklets)?;
        if state.has_groups() && state.group_named(&new.name).is_some() {
            return Err(AdminError::new(format!(
                "pool {:?} has a group {:?} already; add drives to it (tier0 drive add --group {}, then tier0 pool grow), or use \
                 another name",
                self.pools[number].name, new.name, new.name
            )));
        }
        let mut records = Vec::new();
        match (&new.first_name, state.has_groups()) {
            (Some(name), true) => {
                return Err(AdminError::new(format!(
                    "the groups of pool {:?} have names already; omit --first-name {name}",
                    self.pools[number].name
                )));
            }
            (_, true) => {}
            (asked, false) => {
                let name = asked.clone().unwrap_or_else(|| name_of_first(&state).to_owned());
                if name == new.name {
                    return Err(AdminError::new(format!(
                        "the group that pool {:?} has so far would be called {name:?} too; use another name for the new one, or \
                         name the other (--first-name NAME)",
                        self.pools[number].name
                    )));
                }
                records.push(MetaRecord::GroupNamed { group: 0, name });
            }
        }
        records.push(MetaRecord::GroupAdded(group));
        state.clone().apply_all(&records)?;
        Ok(records)
    }

    /// Opens the drives, or tells of all that cannot be used as they are.
    async fn open_all(&self, number: usize, places: &[NewPlace]) -> Result<Vec<NewDrive>, AdminError> {
        let (mut opened, mut held) = (Vec::new(), Vec::new());
        for place in places {
            match self.open_new(number, place).await {
                Ok(drive) => opened.push(drive),
                Err(AdminError::Held(text)) => held.push(text),
                Err(error) => return Err(error),
            }
        }
        match held.is_empty() {
            true => Ok(opened),
            false => {
                // Each ends with the same remedy.
                let facts = held.iter().map(|text| text.split("; ").next().unwrap_or(text));
                let facts: Vec<&str> = facts.collect();
                Err(AdminError::Held(format!(
                    "{}; add --force to overwrite what they hold",
                    facts.join(", and ")
                )))
            }
        }
    }

    /// Chunklets that each drive of the group keeps free.
    fn spare_chunklets(
        &self,
        number: usize,
        new: &NewGroup,
        opened: &[NewDrive],
        spare_drives: u32,
    ) -> Result<u64, AdminError> {
        let state = self.core(number).metadata.state();
        let geometry = state.geometry();
        let chunklets = |drive: &NewDrive| geometry.chunklets(drive.drive.info().sectors.0);
        let (least, place) = opened
            .iter()
            .map(chunklets)
            .zip(&new.drives)
            .min_by_key(|(count, _)| *count)
            .ok_or_else(|| AdminError::new("a group needs drives; name some with --drive NAME=PATH"))?;
        let spares = (least * u64::from(spare_drives)).div_ceil(opened.len() as u64);
        if least <= spares {
            let needed = geometry.area.data_start_sectors + (spares + 1) * geometry.chunklet_sectors;
            return Err(AdminError::new(format!(
                "drive {:?} is too small: a drive of pool {:?} has at least {:#}; name a larger one",
                place.name,
                self.pools[number].name,
                ByteCount(needed * SECTOR_BYTES)
            )));
        }
        Ok(spares)
    }

    /// Whether the metadata have room for the drives; the number that the group gets.
    fn check_members(
        &self,
        number: usize,
        records: &[MetaRecord],
        places: &[NewPlace],
        opened: &[NewDrive],
    ) -> Result<u32, AdminError> {
        let mut state = self.core(number).metadata.state().clone();
        let group = state.groups().len() as u32;
        state.apply_all(records)?;
        for (place, new) in places.iter().zip(opened) {
            let joining = Joining { name: &place.name, new: Some(new), before: None };
            let member = self.new_member((number, group), joining, &new.drive, self.new_id());
            state.check_member_leaves_room(&member)?;
            state.apply_all(&[MetaRecord::MemberAdded(member)])?;
        }
        Ok(group)
    }
}

fn asked(shape: &GroupShape) -> AskedShape<'_> {
    AskedShape {
        raid: &shape.raid,
        set_size: shape.set_size,
        raid50_groups: shape.raid50_groups,
        stripe_unit: shape.stripe_unit,
        spare_drives: shape.spare_drives,
    }
}

/// What the only group of a pool is called where nothing else is asked for.
fn name_of_first(state: &PoolState) -> &'static str {
    match state.data_classes(0).all(|class| class == DriveClass::Flash) {
        true => "flash",
        false => "disks",
    }
}
