//! The course of a life: opened, verified, used and troubled, until it is crashed or its users are done.

use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, select};
use tier0_block::BlockTarget;
use tier0_units::Nanos;
use tier0_world::World;

use crate::config::{LifeEnd, LifePlan};
use crate::life::Life;
use crate::session::Session;
use crate::shelf::Whereabouts;
use crate::system::{Running, System};
use crate::verify::verify;
use crate::{caches, chaos, client, incident, ordeal, placement, scratch, starts};

/// A life that takes longer hangs: far more than any load here needs with the slowest drives and every timeout.
const LIFE_MAX: Nanos = Nanos::from_secs(7_200);

/// How a life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The power was cut.
    Crashed,
    /// All was done.
    Done,
}

/// Lives until the plan's end. `after` is what remains to be done once the users are.
pub(crate) async fn live<S, A>(
    world: World,
    system: S,
    session: Rc<Session>,
    plan: LifePlan,
    after: A,
) -> Result<Ended, String>
where
    S: System,
    A: AsyncFnOnce(Rc<Life<S::Running>>) -> Result<(), String> + 'static,
{
    let switch = session.switch.clone();
    let limit = world.sleep(LIFE_MAX);
    let course = course(world, system, session.clone(), plan, after);
    let course = pin!(course);
    let off = pin!(switch.wait_off());
    let limit = pin!(async move {
        limit.await;
        session.hanging()
    });
    match select(off, select(course, limit)).await {
        Either::Left(_) => Ok(Ended::Crashed),
        Either::Right((Either::Left((result, _)), _)) => result.map(|()| Ended::Done),
        Either::Right((Either::Right((sentence, _)), _)) => Err(sentence),
    }
}

async fn course<S, A>(
    world: World,
    system: S,
    session: Rc<Session>,
    plan: LifePlan,
    after: A,
) -> Result<(), String>
where
    S: System,
    A: AsyncFnOnce(Rc<Life<S::Running>>) -> Result<(), String> + 'static,
{
    session.places_known.set(false);
    let handles = session.shelf.borrow_mut().open(&world, &mut session.random(0x0a));
    if plan.from_opening {
        set_end(&world, &session, plan.end);
    }
    let running = starts::open(&world, &system, &session, handles).await?;
    session.count("opened");
    let volumes = running.volumes();
    let expected = session.config.array.volumes.len();
    if volumes.len() != expected {
        return Err(format!("the array has {} volumes, not {expected}", volumes.len()));
    }
    let life = Rc::new(Life::new(&session, &world, running, volumes));
    let broken = life.clone();
    let broken = pin!(broken.wait_broken());
    let rest = pin!(use_it(life, plan, after));
    match select(broken, rest).await {
        Either::Left((sentence, _)) => Err(sentence),
        Either::Right((result, _)) => result,
    }
}

async fn use_it<R, A>(life: Rc<Life<R>>, plan: LifePlan, after: A) -> Result<(), String>
where
    R: Running,
    A: AsyncFnOnce(Rc<Life<R>>) -> Result<(), String>,
{
    check_announcement(&life)?;
    placement::check(&life.session, &life.status().await)?;
    note_missing(&life);
    scratch::check(&life).await?;
    verify(&life, plan.verified_share).await?;
    if !plan.from_opening {
        set_end(&life.world, &life.session, plan.end);
    }
    let chaos = life.world.spawn(chaos::rage(life.clone()));
    let incidents = life.world.spawn(incident::happen(life.clone()));
    let ordeals = life.world.spawn(ordeal::happen(life.clone(), plan.end));
    let clones = life.world.spawn(scratch::clones::come_and_go(life.clone()));
    let switches_caches = life.session.config.mixture.caches;
    let caches = switches_caches.then(|| life.world.spawn(caches::switch(life.clone())));
    let moves_extents = life.session.config.mixture.moving;
    let placement = moves_extents.then(|| life.world.spawn(placement::move_about(life.clone())));
    let places_volumes = life.session.config.mixture.tiering;
    let places = places_volumes.then(|| life.world.spawn(placement::place_by_hand(life.clone())));
    let clients: Vec<_> = (0..life.session.config.load.clients)
        .map(|number| life.world.spawn(client::work(life.clone(), number)))
        .collect();
    for client in clients {
        client.await;
    }
    life.done.set(true);
    chaos.await;
    incidents.await;
    ordeals.await;
    clones.await;
    if let Some(caches) = caches {
        caches.await;
    }
    if let Some(placement) = placement {
        placement.await;
    }
    if let Some(places) = places {
        places.await;
    }
    after(life.clone()).await?;
    keep_counters(&life).await;
    let status = life.status().await;
    life.session.places_known.set(status.redundant && !status.rebuilding && !status.moving);
    Ok(())
}

/// What was away when the array was opened, and was opened without, is known to be so.
fn note_missing<R: Running>(life: &Life<R>) {
    let mut shelf = life.session.shelf.borrow_mut();
    for name in shelf.names(Whereabouts::Gone) {
        shelf.put(&name, Whereabouts::Out);
    }
}

/// A volatile cache must say so. One that is switched may be another one now.
fn check_announcement<R: Running>(life: &Life<R>) -> Result<(), String> {
    if life.session.config.mixture.caches {
        return Ok(());
    }
    for (number, volume) in life.volumes.iter().enumerate() {
        let stable =
            crate::config::acknowledges_stable(life.session.config.array.volumes[number].write_cache);
        if !stable && !volume.info().volatile_cache {
            return Err(format!("volume {number} has a volatile cache and does not announce it"));
        }
    }
    Ok(())
}

fn set_end(world: &World, session: &Rc<Session>, end: LifeEnd) {
    match end {
        LifeEnd::Change(count) => session.switch.arm(count),
        LifeEnd::Time(time) => {
            let (switch, world_then) = (session.switch.clone(), world.clone());
            world
                .spawn(async move {
                    world_then.sleep(time).await;
                    switch.cut();
                })
                .detach();
        }
        LifeEnd::Done => {}
    }
}

/// Keeps the system's counters for the summary.
async fn keep_counters<R: Running>(life: &Life<R>) {
    for (name, times) in life.running.counters().await {
        life.session.coverage.borrow_mut().add(name, times);
    }
}
