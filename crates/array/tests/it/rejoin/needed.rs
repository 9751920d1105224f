//! Lost drives that may hold what is right of pages of which no copy is: they are not forgotten by the way.

use tier0_api::{AdminReply, AdminRequest, DriveState, DriveStatus};
use tier0_array::engine::Engine;
use tier0_units::{ByteCount, Nanos};
use tier0_world::World;

use super::{PIECES, check, damage, fill, rejoin, scrub, taken_over, taken_over_with_loss, with_a_spare};
use crate::rig::{Drives, create_volume, done, live, pool};

fn remove(force: bool, stop: bool) -> AdminRequest {
    AdminRequest::DriveRemove { drive: "d1".to_owned(), force, stop }
}

async fn is_known(engine: &Engine) -> bool {
    pool(engine).await.drives.iter().any(|drive| drive.name == "d1")
}

/// A request is refused, with this in its text.
async fn refused(engine: &Engine, request: AdminRequest, with: &str) {
    match engine.administer(request).await {
        AdminReply::Refused(text) => assert!(text.contains(with), "{text}"),
        other => panic!("{other:?}"),
    }
}

/// Takes `d1` back, which has what is right of all.
async fn all_comes_back(world: &World, engine: &Engine, drives: &Drives) {
    rejoin(world, engine, drives).await;
    scrub(world, engine).await;
    check(world, engine, 0..PIECES, 1).await;
    assert!(pool(engine).await.integrity.lost.is_empty());
}

/// An administrator who removed a drive that was lost and rebuilt was told that nothing is less redundant, and the only right
/// copy of what had rotted elsewhere was forgotten.
#[test]
fn a_lost_drive_is_removed_only_by_who_gives_up_what_it_may_hold() {
    for gives_up in [false, true] {
        let array = with_a_spare("raid5", 4, 68);
        live(3, move |world| async move {
            let engine = taken_over_with_loss(&world, &array, 1).await;
            array.media[1].reconnect();
            refused(&engine, remove(false, false), "take it back (tier0 drive rejoin)").await;
            assert!(is_known(&engine).await);
            if !gives_up {
                return all_comes_back(&world, &engine, &array).await;
            }
            done(&engine, remove(true, false)).await;
            taken_over(&world, &engine).await;
            assert!(!is_known(&engine).await);
        });
    }
}

/// A drive that was taken back and is lost again is another member, of which nothing is known to be needed; what the one
/// before it left there is.
#[test]
fn a_drive_that_is_lost_again_while_it_is_taken_back_is_needed_as_before() {
    let array = with_a_spare("raid5", 4, 71);
    live(3, move |world| async move {
        let engine = taken_over_with_loss(&world, &array, 1).await;
        array.media[1].reconnect();
        engine.rejoin_drive(0, "d1", array.media[1].open(&world)).await.expect("it joins");
        let fail = AdminRequest::DriveFail { drive: "d1".to_owned() };
        refused(&engine, fail, "had bad pages").await;
        array.media[1].unplug();
        let is_lost = |drive: &DriveStatus| drive.name == "d1" && drive.state != DriveState::Active;
        while !pool(&engine).await.drives.iter().any(is_lost) {
            world.sleep(Nanos::from_secs(1)).await;
        }
        array.media[1].reconnect();
        refused(&engine, remove(false, false), "take it back (tier0 drive rejoin)").await;
        all_comes_back(&world, &engine, &array).await;
    });
}

/// The same drive was forgotten at the end of the rebuild that found the losses, where it had been taken out or replaced
/// before.
#[test]
fn a_drive_that_is_being_removed_stays_known_where_its_rebuild_finds_losses() {
    for was_lost in [false, true] {
        let mut array = Drives::founded("raid5", 4, 4, 2, 69);
        let spare = array.plug_in();
        array.life(1, move |world, engine, _| async move {
            done(&engine, create_volume("big", ByteCount::mib(PIECES), true)).await;
            fill(&world, &engine, 0..PIECES, 1).await;
            engine.drain().await.expect("destaged");
        });
        array.life(2, |_, engine, _| async move { engine.drain().await.expect("destaged") });
        array.life(3, move |world, engine, drives| async move {
            let d1 = || "d1".to_owned();
            if was_lost {
                done(&engine, AdminRequest::DriveFail { drive: d1() }).await;
            }
            damage(&drives.media[0]);
            done(&engine, remove(!was_lost, false)).await;
            let medium = drives.media.last().expect("it was plugged in");
            engine.add_drive(0, &spare, medium.open(&world)).await.expect("it joins");
            taken_over(&world, &engine).await;
            let status = pool(&engine).await;
            assert!(status.integrity.unrecoverable > 0, "something is lost");
            assert!(is_known(&engine).await, "{:?}", status.problems);
            let says = |text: &str| status.problems.iter().any(|problem| problem.contains(text));
            assert!(says("keep what is being removed"), "{:?}", status.problems);
            refused(&engine, remove(false, false), "keep it (tier0 drive remove --stop)").await;
            done(&engine, remove(false, true)).await;
            all_comes_back(&world, &engine, &drives).await;
            assert!(pool(&engine).await.drives.iter().all(|drive| drive.state == DriveState::Active));
        });
    }
}

/// A drive had been put back to an older image; reads had met some of that and repaired it. An administrator who then took the
/// other drive out was not told that the rest had its only right copy there.
#[test]
fn a_drive_beside_one_that_gave_something_wrong_is_taken_out_after_a_scrub() {
    let array = Drives::founded("raid5", 3, 3, 1, 72);
    array.life(1, |world, engine, _| async move {
        done(&engine, create_volume("big", ByteCount::mib(PIECES), true)).await;
        fill(&world, &engine, 0..PIECES, 1).await;
        engine.drain().await.expect("destaged");
    });
    array.life(2, |_, engine, _| async move { engine.drain().await.expect("destaged") });
    array.life(3, |world, engine, drives| async move {
        let fail = || AdminRequest::DriveFail { drive: "d1".to_owned() };
        damage(&drives.media[0]);
        check(&world, &engine, 0..1, 1).await;
        assert!(pool(&engine).await.integrity.repaired > 0);
        refused(&engine, fail(), "drive d0 had bad pages").await;
        scrub(&world, &engine).await;
        done(&engine, fail()).await;
        check(&world, &engine, 0..PIECES, 1).await;
    });
}
