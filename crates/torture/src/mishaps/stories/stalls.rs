//! Stalls are not failures, and one that waits does not make others wait.

use std::time::Duration;

use rustix::process::Signal;

use super::super::faulty::Manners;
use super::super::host::Host;
use super::super::scene::{Scene, drive_state, ensure, uri};
use crate::TortureError;
use crate::clock::pause;

const MIRROR: &str = "raid = \"raid1\"\nset_size = 2";

/// SIGSTOP for 32 s under load lost healthy drives: patience ran while nothing was submitted or reaped.
pub(super) fn server_stopped(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(4, "raid = \"raid10\"\nset_size = 4")?;
    scene.host.begin(false);
    scene.host.goes_on(200, 30)?;
    scene.signal(Signal::STOP);
    pause(Duration::from_secs(35));
    scene.signal(Signal::CONT);
    scene.host.goes_on(200, 20)?;
    scene.host.end()?;
    scene.whole(4)?;
    scene.nothing_lost()
}

/// A disk that answers in 2 s was added: hosts stood still for 38 s, then both healthy drives were lost.
pub(super) fn slow_drive_joins(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    scene.faulty_drive("d2", Manners { delay_s: 2, ..Manners::default() })?;
    scene.host.begin(false);
    scene.host.goes_on(200, 30)?;
    let path = scene.path("d2").display().to_string();
    // However it is answered: a disk this slow may be refused.
    let said = scene.tier0(&["drive", "add", "@", "--name", "d2", "--path", &path]);
    scene.host.goes_on(200, 20)?;
    let seen = scene.host.end()?;
    ensure(seen.longest_s < 5.0, || format!("a host waited {:.1} s", seen.longest_s))?;
    said?;
    scene.pool("both old drives in service", 5, |pool| {
        ["d0", "d1"].iter().all(|drive| super::super::scene::drive_state(pool, drive) == "active")
    })?;
    scene.nothing_lost()
}

/// A drive that answers nothing for ten seconds is suspect, and healthy afterwards.
pub(super) fn drive_hangs_ten_seconds(scene: &mut Scene) -> Result<(), TortureError> {
    scene.drive("d0")?;
    scene.faulty_drive("d1", Manners::default())?;
    scene.create_and_serve(MIRROR, "")?;
    scene.host.begin(false);
    scene.host.goes_on(100, 30)?;
    scene.faulty("d1").hang(true)?;
    let told = scene.pool("a suspect drive", 9, |pool| pool["drives"][1]["health"]["standing"] == "suspect");
    pause(Duration::from_secs(2));
    scene.faulty("d1").hang(false)?;
    told?;
    scene.host.goes_on(200, 20)?;
    scene.host.end()?;
    scene.whole(2)?;
    scene.nothing_lost()
}

/// A drive that hung in the midst of destaging held up every thread of the array, whose standing still then excused it.
pub(super) fn drive_hangs_for_good(scene: &mut Scene) -> Result<(), TortureError> {
    scene.drive("d0")?;
    scene.faulty_drive("d1", Manners::default())?;
    scene.create_and_serve(MIRROR, "")?;
    scene.host.begin(false);
    scene.host.goes_on(300, 30)?;
    scene.faulty("d1").hang(true)?;
    let lost = scene.pool("a lost drive", 60, |pool| drive_state(pool, "d1") == "lost");
    let went_on = scene.host.goes_on(300, 30);
    scene.faulty("d1").hang(false)?;
    lost?;
    went_on?;
    scene.host.end()?;
    scene.nothing_lost()
}

/// Four workers served all drives: one hung drive starved the healthy ones until they were lost too.
pub(super) fn other_pool_goes_on(scene: &mut Scene) -> Result<(), TortureError> {
    scene.drive("d0")?;
    scene.drive("d1")?;
    scene.faulty_drive("h0", Manners::default())?;
    scene.drive("h1")?;
    let other = "[[pool]]\nname = \"pool1\"\ndrives = [\"h*\"]\nraid = \"raid1\"\nset_size = 2\n\n\
                 [[volume]]\nname = \"lun1\"\npool = \"pool1\"\nsize = \"16MiB\"";
    scene.create_and_serve(&format!("{MIRROR}\ndrives = [\"d*\"]"), other)?;
    let mut beside = Host::new(uri(&scene.at, "lun1"), 16 * 2048);
    beside.begin(true);
    beside.goes_on(100, 30)?;
    scene.host.begin(false);
    scene.faulty("h0").hang(true)?;
    pause(Duration::from_secs(5));
    let went_on = scene.host.within(Duration::from_secs(15));
    scene.faulty("h0").hang(false)?;
    ensure(went_on > 200, || format!("only {went_on} writes beside a drive that hangs"))?;
    beside.goes_on(100, 30)?;
    beside.end()?;
    let seen = scene.host.end()?;
    ensure(seen.longest_s < 5.0, || format!("a host of another pool waited {:.1} s", seen.longest_s))?;
    scene.whole(2)?;
    beside.check()?;
    scene.nothing_lost()
}
