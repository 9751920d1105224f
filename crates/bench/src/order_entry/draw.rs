//! What transactions choose, and how: items, customers, last names, warehouses.
//!
//! The laws are those of the modelled workload: NURand of the specification (clause 2.1.6), which may be replaced for items. The
//! constant C of NURand shifts the result and changes no share; it is 0 for items and customers, as in the model. For last names
//! it differs between load and run, as clause 2.1.6.1 demands, so that the most frequent names of the load are not the most
//! frequent of the run.

use tier0_database::workload::{Drawn, Law, Workload};
use tier0_world::Random;

use super::names::last_name;
use super::schema::{CUSTOMERS, DISTRICTS, ITEMS};
use crate::load::lines::between;

/// Last names that there are.
const NAMES: u64 = 1000;
/// C of last names in a run less C of the load: from 65 to 119 and neither 96 nor 112 (clause 2.1.6.1). With this one a name
/// finds 2.96 customers on average, by the two distributions; with others from 1.8 to 3.9. The modelled load has 3.
const NAME_SHIFT: u64 = 100;

/// Which warehouse a user works for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// The user's own, always (clause 2.4.1.1); users are spread evenly over the warehouses.
    Fixed,
    /// Any, drawn for each transaction.
    All,
}

/// How items are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Items {
    /// As the specification has it (clause 2.1.6).
    #[default]
    NuRand,
    /// All alike, as HammerDB draws them.
    Uniform,
}

impl Items {
    /// Its name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Items::NuRand => "nurand",
            Items::Uniform => "uniform",
        }
    }
}

impl Home {
    /// Its name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Home::Fixed => "fixed",
            Home::All => "all",
        }
    }
}

/// The laws of a run.
#[derive(Clone, Debug)]
pub struct Laws {
    item: Drawn,
    customer: Drawn,
    name: Drawn,
    home: Home,
    warehouses: i32,
}

/// A customer, as a transaction names one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Customer {
    Number(i32),
    LastName(String),
}

impl Laws {
    /// The laws of a workload over so many warehouses, with another one for items where `item` says so.
    pub fn new(workload: &Workload, item: Option<Law>, home: Home, warehouses: u32) -> Laws {
        let of = |choice: &str| *workload.choices.get(choice).expect("order entry has this choice");
        Laws {
            item: item.unwrap_or_else(|| of("item")).over(ITEMS as u64),
            customer: of("customer").over(CUSTOMERS as u64),
            name: of("last-name").over(NAMES),
            home,
            warehouses: warehouses as i32,
        }
    }

    /// The warehouse for the next transaction of a user with this home, 0 for the first.
    pub(crate) fn warehouse(&self, random: &mut Random, home: u64) -> i32 {
        match self.home {
            Home::Fixed => home as i32 + 1,
            Home::All => between(random, 1, i64::from(self.warehouses)) as i32,
        }
    }

    /// Another warehouse than this one; this one where there is no other.
    pub(crate) fn elsewhere(&self, random: &mut Random, warehouse: i32) -> i32 {
        if self.warehouses == 1 {
            return warehouse;
        }
        let step = between(random, 1, i64::from(self.warehouses) - 1) as i32;
        (warehouse - 1 + step) % self.warehouses + 1
    }

    /// An item.
    pub(crate) fn item(&self, random: &mut Random) -> i32 {
        self.item.draw(random, 0) as i32 + 1
    }

    /// A customer's number.
    pub(crate) fn customer(&self, random: &mut Random) -> i32 {
        self.customer.draw(random, 0) as i32 + 1
    }

    /// A customer by last name in 60 % of all cases, else by number (clauses 2.5.1.2 and 2.6.1.2).
    pub(crate) fn named_customer(&self, random: &mut Random) -> Customer {
        match random.chance(0.6) {
            true => Customer::LastName(last_name((self.name.draw(random, 0) + NAME_SHIFT) % NAMES)),
            false => Customer::Number(self.customer(random)),
        }
    }
}

/// A district.
pub(crate) fn district(random: &mut Random) -> i16 {
    between(random, 1, i64::from(DISTRICTS)) as i16
}

/// The number of a customer's last name in the load: each name once for the first thousand, then NURand.
pub(crate) fn loaded_name(random: &mut Random, name: &Drawn, customer: i32) -> u64 {
    match (customer - 1) as u64 {
        first if first < NAMES => first,
        _ => name.draw(random, 0),
    }
}

/// The law of last names in the load.
pub(crate) fn names_of_load(workload: &Workload) -> Drawn {
    workload.choices.get("last-name").copied().unwrap_or(Law::NuRand { a: 255 }).over(NAMES)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn workload() -> Workload {
        Workload::find("order-entry", &Default::default()).expect("it is embedded")
    }

    /// Shares of the hottest items, as design notes and the literature have them for NURand(8191): 39 % of the draws go to the
    /// hottest 2 %, 71 % to a tenth and 84 % to a fifth.
    #[test]
    fn items_are_skewed_as_the_specification_says() {
        let shares = |item: Option<Law>, draws: u32| {
            let laws = Laws::new(&workload(), item, Home::Fixed, 1);
            let mut random = Random::new(1, 1);
            let mut counts = vec![0u32; ITEMS as usize];
            for _ in 0..draws {
                counts[laws.item(&mut random) as usize - 1] += 1;
            }
            counts.sort_unstable_by(|a, b| b.cmp(a));
            [0.02, 0.1, 0.2].map(|part| {
                let hottest: u32 = counts[..(f64::from(ITEMS) * part) as usize].iter().sum();
                f64::from(hottest) / f64::from(draws)
            })
        };
        let drawn = shares(None, 4_000_000);
        for (drawn, share) in drawn.into_iter().zip([0.393, 0.71, 0.844]) {
            // The hottest of a sample are a little hotter than those of the law.
            assert!((-0.005..0.03).contains(&(drawn - share)), "{drawn} instead of {share}");
        }
        let uniform = shares(Some(Law::Uniform), 4_000_000)[2];
        assert!(uniform < 0.27, "{uniform}");
    }

    /// The mean number of customers whom a name finds is 3, as the modelled load has it.
    #[test]
    fn a_last_name_finds_three_customers() {
        let mut random = Random::new(1, 1);
        let names = names_of_load(&workload());
        let mut customers = vec![0u32; NAMES as usize];
        let districts = 50;
        for customer in (0..districts).flat_map(|_| 1..=CUSTOMERS) {
            customers[loaded_name(&mut random, &names, customer) as usize] += 1;
        }
        assert!(customers.iter().all(|count| *count >= districts), "every name is there in every district");
        let laws = Laws::new(&workload(), None, Home::Fixed, 1);
        let numbers: BTreeMap<String, usize> =
            (0..NAMES as usize).map(|n| (last_name(n as u64), n)).collect();
        let (mut found, mut by_name) = (0, 0);
        let draws = 100_000;
        for _ in 0..draws {
            if let Customer::LastName(name) = laws.named_customer(&mut random) {
                found += customers[numbers[&name]];
                by_name += 1;
            }
        }
        let mean = f64::from(found) / f64::from(districts) / f64::from(by_name);
        assert!((2.9..3.02).contains(&mean), "{mean}");
        assert!((0.59..0.61).contains(&(f64::from(by_name) / f64::from(draws))));
    }

    #[test]
    fn warehouses_are_home_or_any_or_elsewhere() {
        let mut random = Random::new(1, 1);
        let fixed = Laws::new(&workload(), None, Home::Fixed, 7);
        let all = Laws::new(&workload(), None, Home::All, 7);
        let (mut seen, mut others) = ([0; 8], [0; 8]);
        for _ in 0..7000 {
            assert_eq!(fixed.warehouse(&mut random, 4), 5);
            seen[all.warehouse(&mut random, 4) as usize] += 1;
            others[fixed.elsewhere(&mut random, 5) as usize] += 1;
        }
        assert!(seen[1..].iter().all(|count| (850..1150).contains(count)), "{seen:?}");
        assert_eq!((others[0], others[5]), (0, 0));
        assert!([1, 2, 3, 4, 6, 7].iter().all(|place| others[*place] > 1000), "{others:?}");
        let alone = Laws::new(&workload(), None, Home::Fixed, 1);
        assert_eq!(alone.elsewhere(&mut random, 1), 1);
    }
}
