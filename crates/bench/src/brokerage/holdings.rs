//! What a trade does to the holdings of an account in a security: it closes those of the other sign, oldest or newest first, and
//! opens one with what is left. Sold shares that the account does not hold are a holding below zero.

/// A holding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lot {
    /// The trade that opened it, by which it is named.
    pub(crate) trade: i64,
    /// Shares; below zero if they are owed.
    pub(crate) quantity: i32,
    /// What a share cost, in cents.
    pub(crate) price: i32,
}

/// What a trade did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effect {
    /// Holdings that it changed: their name, shares before and after.
    pub(crate) changed: Vec<(i64, i32, i32)>,
    /// Shares of the holding that it opened; 0 if none.
    pub(crate) opened: i32,
    /// What was gained by closing, in cents.
    pub(crate) profit: i64,
}

/// The effect of a trade of so many shares, below zero if it sells, on holdings in the order in which they are closed.
pub(crate) fn effect(lots: impl IntoIterator<Item = Lot>, shares: i32, price: i32) -> Effect {
    let mut done = Effect { opened: shares, ..Effect::default() };
    for lot in lots {
        if done.opened == 0 || lot.quantity.signum() == shares.signum() {
            break;
        }
        let closed = lot.quantity.abs().min(done.opened.abs());
        let after = lot.quantity - lot.quantity.signum() * closed;
        done.changed.push((lot.trade, lot.quantity, after));
        done.profit += i64::from(price - lot.price) * i64::from(closed) * i64::from(lot.quantity.signum());
        done.opened -= shares.signum() * closed;
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sale_closes_what_is_held_and_owes_the_rest() {
        let lots =
            [Lot { trade: 1, quantity: 100, price: 2000 }, Lot { trade: 2, quantity: 200, price: 2100 }];
        let sold = effect(lots, -200, 2200);
        assert_eq!(sold.changed, [(1, 100, 0), (2, 200, 100)]);
        assert_eq!((sold.opened, sold.profit), (0, 200 * 100 + 100 * 100));
        let more = effect(lots, -400, 2000);
        assert_eq!((more.changed.len(), more.opened, more.profit), (2, -100, -100 * 200));
        let bought = effect(lots, 400, 2000);
        assert_eq!((bought.changed.len(), bought.opened), (0, 400));
        // Owed shares are bought back.
        let owed = effect([Lot { trade: 3, quantity: -100, price: 2500 }], 100, 2400);
        assert_eq!((owed.changed, owed.opened, owed.profit), (vec![(3, -100, 0)], 0, 10_000));
    }
}
