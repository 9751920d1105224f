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

/// Asks the system for something; it may refuse, but not fail. False where it refuses.
pub(crate) async fn ask<R: Running>(
    life: &Rc<Life<R>>,
    request: Admin,
    counted: &'static str,
) -> Result<bool, String> {
    let what = request.describe();
    let _request = life.session.request(|| what.clone());
    let result = life.running.admin(request).await;
    life.session.note(&life.world, format!("{what}: {result:?}"));
    match result {
        Ok(()) => {
            life.session.count(counted);
            Ok(true)
        }
        Err(SystemError::Refused(_)) => {
            life.session.count("administrators refused");
            Ok(false)
        }
        Err(SystemError::Failed(why)) => Err(format!("to {what} fails: {why}")),
    }
}
