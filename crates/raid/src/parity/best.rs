//! The operations of [`Level`] at the best level of this CPU, as plain functions.

use super::level::Level;

/// [`Level::xor_into`] at [`Level::best`].
#[inline]
pub fn xor_into(dst: &mut [u8], src: &[u8]) {
    Level::best().xor_into(dst, src);
}

/// [`Level::xor_many`] at [`Level::best`].
#[inline]
pub fn xor_many<D: AsRef<[u8]>>(dst: &mut [u8], sources: &[D]) {
    Level::best().xor_many(dst, sources);
}

/// [`Level::q`] at [`Level::best`].
#[inline]
pub fn q<D: AsRef<[u8]>>(q: &mut [u8], data: &[D]) {
    Level::best().q(q, data);
}

/// [`Level::pq`] at [`Level::best`].
#[inline]
pub fn pq<D: AsRef<[u8]>>(p: &mut [u8], q: &mut [u8], data: &[D]) {
    Level::best().pq(p, q, data);
}

/// [`Level::update_p`] at [`Level::best`].
#[inline]
pub fn update_p(p: &mut [u8], old: &[u8], new: &[u8]) {
    Level::best().update_p(p, old, new);
}

/// [`Level::update_q`] at [`Level::best`].
#[inline]
pub fn update_q(q: &mut [u8], unit: usize, old: &[u8], new: &[u8]) {
    Level::best().update_q(q, unit, old, new);
}

/// [`Level::update_pq`] at [`Level::best`].
#[inline]
pub fn update_pq(p: &mut [u8], q: &mut [u8], unit: usize, old: &[u8], new: &[u8]) {
    Level::best().update_pq(p, q, unit, old, new);
}

/// [`Level::recover`] at [`Level::best`].
#[inline]
pub fn recover<D: AsRef<[u8]>>(
    lost: &mut [&mut [u8]],
    data: &[Option<D>],
    p: Option<&[u8]>,
    q: Option<&[u8]>,
) {
    Level::best().recover(lost, data, p, q);
}

/// [`Level::recover_from_p`] at [`Level::best`].
#[inline]
pub fn recover_from_p<D: AsRef<[u8]>>(lost: &mut [u8], data: &[Option<D>], p: &[u8]) {
    Level::best().recover_from_p(lost, data, p);
}

/// [`Level::recover_from_q`] at [`Level::best`].
#[inline]
pub fn recover_from_q<D: AsRef<[u8]>>(lost: &mut [u8], data: &[Option<D>], q: &[u8]) {
    Level::best().recover_from_q(lost, data, q);
}

/// [`Level::recover_pair`] at [`Level::best`].
#[inline]
pub fn recover_pair<D: AsRef<[u8]>>(x: &mut [u8], y: &mut [u8], data: &[Option<D>], p: &[u8], q: &[u8]) {
    Level::best().recover_pair(x, y, data, p, q);
}

/// [`Level::recover_data_and_p`] at [`Level::best`].
#[inline]
pub fn recover_data_and_p<D: AsRef<[u8]>>(lost: &mut [u8], p: &mut [u8], data: &[Option<D>], q: &[u8]) {
    Level::best().recover_data_and_p(lost, p, data, q);
}

/// [`Level::recover_data_and_q`] at [`Level::best`].
#[inline]
pub fn recover_data_and_q<D: AsRef<[u8]>>(lost: &mut [u8], q: &mut [u8], data: &[Option<D>], p: &[u8]) {
    Level::best().recover_data_and_q(lost, q, data, p);
}
