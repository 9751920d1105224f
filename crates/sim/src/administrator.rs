//! What everybody asks an administrator for.

use std::rc::Rc;

use crate::life::Life;
use crate::system::{Admin, Running, SystemError};

/// Adds a blank drive.
pub(crate) async fn add_blank<R: Running>(life: &Rc<Life<R>>) -> Result<(), String> {
    let session = &life.session;
    let name = session.shelf.borrow_mut().make();
    let drive = session.shelf.borrow_mut().handle(&name, &life.world);
    ask(life, Admin::Add { drive }, "blank drives added").await.map(|_| ())
}

/// Replaces a drive by a blank one.
pub(crate) async fn replace<R: Running>(life: &Rc<Life<R>>, old: &str) -> Result<(), String> {
    let session = &life.session;
    let name = session.shelf.borrow_mut().make();
    let new = session.shelf.borrow_mut().handle(&name, &life.world);
    ask(life, Admin::Replace { old: old.to_owned(), new }, "drives replaced").await.map(|_| ())
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is done.
    Done,
    /// Nothing has changed, and nothing will.
    Refused,
    /// It may be done later, for instance when drives are back that the system waits for.
    Unfinished,
}

/// Asks the system for something; it may refuse, but not fail. False where it is not done when the system answers.
pub(crate) async fn ask<R: Running>(
    life: &Rc<Life<R>>,
    wish: Admin,
    counted: &'static str,
) -> Result<bool, String> {
    Ok(request(life, wish, counted).await? == Outcome::Done)
}

/// As [`ask`], and tells whether what is not done may be done later.
pub(crate) async fn request<R: Running>(
    life: &Rc<Life<R>>,
    wish: Admin,
    counted: &'static str,
) -> Result<Outcome, String> {
    let what = wish.describe();
    let _request = life.session.request(|| what.clone());
    let result = life.running.admin(wish).await;
    life.session.note(&life.world, format!("{what}: {result:?}"));
    match result {
        Ok(()) => {
            life.session.count(counted);
            Ok(Outcome::Done)
        }
        Err(SystemError::Refused(_)) => {
            life.session.count("administrators refused");
            Ok(Outcome::Refused)
        }
        Err(SystemError::Unfinished(_)) => {
            life.session.count("administrators who wait");
            Ok(Outcome::Unfinished)
        }
        Err(SystemError::Failed(why)) => Err(format!("to {what} fails: {why}")),
    }
}
