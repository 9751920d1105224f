//! What a description says to no effect, or against its own purpose: no errors, but the administrator should know.

use tier0_raid::layout::RaidLevel;
use tier0_units::counted;

use super::{
    Description, DriveDescription, File, PoolDescription, PoolSection, VolumeDescription, VolumePlace,
};

/// What the file says in vain, one sentence each.
pub(super) fn notes(
    file: &File,
    drives: &[DriveDescription],
    pools: &[PoolDescription],
    volumes: &[VolumeDescription],
) -> Vec<String> {
    let mut notes = Vec::new();
    for (section, pool) in file.pools.iter().zip(pools) {
        note_pool(section, pool, drives, &mut notes);
    }
    for (place, drive) in drives.iter().enumerate() {
        if !pools.iter().any(|pool| pool.uses(place)) {
            let name = &drive.name;
            notes.push(format!("drive {name:?} is in no pool and is unused; add it to pool.drives"));
        }
    }
    notes.extend(volumes.iter().filter_map(|volume| without_tier(volume, pools)));
    let nbd = &file.nbd;
    let access = [&nbd.socket_mode, &nbd.socket_owner, &nbd.socket_group];
    let is_unix = |address: &toml::Spanned<String>| address.get_ref().starts_with("unix:");
    if access.iter().any(|field| field.is_some()) && !nbd.listen.iter().any(is_unix) {
        notes.push(
            "nbd: socket_mode, socket_owner and socket_group have no effect without a unix socket; add one \
             to nbd.listen"
                .to_owned(),
        );
    }
    notes
}

/// That a volume is to lie in a tier that its pool cannot have.
fn without_tier(volume: &VolumeDescription, pools: &[PoolDescription]) -> Option<String> {
    let place = volume.place.filter(|place| *place != VolumePlace::Home)?;
    let pool = &pools[volume.pool];
    (pool.groups.len() < 2).then(|| {
        format!(
            "volume {:?}: place = {:?} has no effect, for pool {:?} has one kind of drives; give it a group of flash drives beside \
             one of disks ([[pool.group]])",
            volume.name,
            place.name(),
            pool.name
        )
    })
}

/// Whether nothing of a pool outlives the process.
fn in_memory(pool: &PoolDescription, drives: &[DriveDescription]) -> bool {
    pool.drives.iter().chain(&pool.log_drives).all(|place| drives[*place].path.is_none())
}

/// Whether a pool has drives in virtual time alone, where everything that is said of it counts.
fn is_virtual(pool: &PoolDescription, drives: &[DriveDescription]) -> bool {
    in_memory(pool, drives) && pool.drives.iter().all(|place| drives[*place].ram.is_none())
}

fn note_pool(
    section: &PoolSection,
    pool: &PoolDescription,
    drives: &[DriveDescription],
    notes: &mut Vec<String>,
) {
    let (name, level) = (&pool.name, pool.levels());
    let has = |level: RaidLevel| pool.groups.iter().any(|group| group.raid.level == level);
    let of_groups = section.set_groups.iter().map(|group| group.groups.is_some());
    let shapes = of_groups.chain(section.set_groups.is_empty().then_some(section.groups.is_some()));
    for (group, _) in pool.groups.iter().zip(shapes).filter(|(_, given)| *given) {
        if group.raid.level != RaidLevel::Raid50 {
            let level = group.raid.level;
            notes.push(format!(
                "pool {name:?}: groups applies to raid50 and has no effect with {level}; remove it"
            ));
        }
    }
    if is_virtual(pool, drives) {
        return;
    }
    if in_memory(pool, drives) {
        let given = [
            ("log", section.log.is_some()),
            ("log_drives", section.log_drives.is_some()),
            ("checksums", section.checksums == Some(true)),
            ("warn_at", section.warn_at.is_some()),
            ("reserve", section.reserve.is_some()),
            ("flash_cache_writes", section.flash_cache_writes.is_some()),
        ];
        for (field, _) in given.into_iter().filter(|(_, given)| *given) {
            notes.push(format!("pool {name:?}: {field} has no effect on drives in memory; remove it"));
        }
        return;
    }
    if pool.log_drives.len() == 1 && pool.groups.iter().any(|group| group.raid.level != RaidLevel::Raid0) {
        let drive = &drives[pool.log_drives[0]].name;
        notes.push(format!(
            "pool {name:?} is {level}, but its write log is only on drive {drive:?}: if that drive fails, \
             acknowledged writes are lost; name two log_drives"
        ));
    }
    if pool.log_drives.len() == 2 && has(RaidLevel::Raid6) {
        notes.push(format!(
            "pool {name:?} is {level} and survives two drive failures, but its write log is on two drives: \
             if both fail, acknowledged writes are lost; name three log_drives"
        ));
    }
}

impl Description {
    /// What the file says of drive files that exist, and that is not so: one sentence each.
    fn notes_on_files(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for drive in &self.drives {
            let (Some(path), Some(size), None) = (&drive.path, drive.size, &drive.model) else { continue };
            let Ok(found) = std::fs::metadata(path) else { continue };
            if found.is_file() && found.len() != size.0 {
                notes.push(format!(
                    "drive {:?}: size is {size}, but {path:?} exists with {}, which applies; correct the file",
                    drive.name,
                    tier0_units::ByteCount(found.len()),
                ));
            }
        }
        notes
    }

    /// Everything that the file says in vain.
    pub fn all_notes(&self) -> Vec<String> {
        [self.warnings.clone(), self.notes_on_files()].concat()
    }

    /// The description in a few words: its pools, drives and volumes.
    pub fn outline(&self) -> String {
        format!(
            "array {}: {}, {}, {}",
            self.name,
            counted(self.pools.len() as u64, "pool"),
            counted(self.drives.len() as u64, "drive"),
            counted(self.volumes.len() as u64, "volume"),
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::Description;

    fn warnings(drives: &str, pool: &str) -> Vec<String> {
        let text = format!("[array]\nname = \"a\"\n{drives}[[pool]]\nname = \"p\"\n{pool}");
        Description::parse(&text, "a.toml").expect("a description").warnings
    }

    const FILES: &str = "[[drive]]\nname = \"d{n}\"\ncount = 4\npath = \"d{n}.img\"\n";
    const MEMORY: &str = "[[drive]]\nname = \"d{n}\"\ncount = 4\nram = \"64MiB\"\n";

    /// Fields that do nothing were swallowed, and a log on one drive was taken for redundant.
    #[test]
    fn what_does_nothing_is_told() {
        let told = |drives, pool, words: &[&str]| {
            let warnings = warnings(drives, pool);
            let [warning] = &warnings[..] else { panic!("{pool}: {warnings:?}") };
            words.iter().for_each(|word| assert!(warning.contains(word), "{warning}"));
        };
        told(FILES, "raid = \"raid10\"\ngroups = 2\n", &["groups", "raid50", "raid10"]);
        told(FILES, "raid = \"raid1\"\nset_size = 2\nlog_drives = [\"d3\"]\n", &["\"d3\"", "two log_drives"]);
        let six = FILES.replace("count = 4", "count = 6");
        let two_logs = "raid = \"raid6\"\nset_size = 4\nlog_drives = [\"d4\", \"d5\"]\n";
        told(&six, two_logs, &["two drives", "three log_drives"]);
        told(MEMORY, "raid = \"raid10\"\nlog = \"64MiB\"\n", &["log", "memory"]);
        told(MEMORY, "raid = \"raid10\"\nflash_cache_writes = 5\n", &["flash_cache_writes", "memory"]);
        told(FILES, "raid = \"raid5\"\ndrives = [\"d0\", \"d1\", \"d2\"]\n", &["\"d3\"", "no pool"]);
        assert_eq!(warnings(FILES, "raid = \"raid0\"\nlog_drives = [\"d3\"]\n"), [""; 0]);
        assert_eq!(warnings(FILES, "raid = \"raid5\"\nset_size = 4\n"), [""; 0]);
        // In virtual time a pool has its log and its checksums.
        let models = "[[drive]]\nname = \"d{n}\"\ncount = 4\nmodel = \"nvme\"\n";
        assert_eq!(warnings(models, "raid = \"raid10\"\nlog = \"64MiB\"\nlog_drives = [\"d3\"]\n"), [""; 0]);
    }

    #[test]
    fn what_does_nothing_beside_the_pools_is_told() {
        let sockets =
            |listen| format!("raid = \"raid0\"\n[nbd]\nsocket_mode = \"0660\"\nlisten = [{listen:?}]\n");
        assert!(
            matches!(&warnings(FILES, &sockets("127.0.0.1:1"))[..], [told] if told.contains("socket_mode"))
        );
        assert_eq!(warnings(FILES, &sockets("unix:/x")), [""; 0]);
    }

    #[test]
    fn a_size_that_a_file_has_not_is_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("d0.img");
        std::fs::File::create(&path).and_then(|file| file.set_len(3 << 20)).expect("a file");
        let text = format!(
            "[array]\nname = \"a\"\n[[drive]]\nname = \"d0\"\npath = {path:?}\nsize = \"2MiB\"\n\
             [[pool]]\nname = \"p\"\nraid = \"raid0\"\n"
        );
        let notes = Description::parse(&text, "a.toml").expect("a description").all_notes();
        assert!(matches!(&notes[..], [note] if note.contains("2MiB") && note.contains("3MiB")), "{notes:?}");
        let text = text.replace("2MiB", "3MiB");
        assert_eq!(Description::parse(&text, "a.toml").expect("a description").all_notes(), [""; 0]);
    }
}
