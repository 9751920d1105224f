//! Waiting for each other: within a world ([`Notify`], [`Semaphore`], [`join_all`]), and between the worlds of several
//! threads ([`mailbox`]).

mod inbox;
mod mailbox;
mod notify;
mod semaphore;
pub mod shared;

pub use futures_channel::oneshot;
pub(crate) use inbox::Inbox;
pub use mailbox::{MailReceiver, MailSender, mailbox};
pub use notify::Notify;
pub use semaphore::{Permit, Semaphore};
