//! What follows from numbers alone: how many of everything there is, which accounts a customer has, names and symbols.
//!
//! Load and run both know it, so that a run needs no lists. The numbers of rows are those of the modelled workload
//! (`catalog/workloads/brokerage.toml`); accounts of a customer are 1 to 4, 2 to 8 or 5 to 10 by tier.

use tier0_workload::draw::Scramble;

/// Customers of a load unit.
pub(crate) const CUSTOMERS: u64 = 1000;
/// Brokers, companies and securities of a load unit.
pub(crate) const BROKERS: u64 = 10;
pub(crate) const COMPANIES: u64 = 500;
pub(crate) const SECURITIES: u64 = 685;
/// Account numbers that are set aside for a customer.
const ACCOUNTS_MAX: u64 = 10;
/// Securities that an account trades in.
pub(crate) const SECURITIES_OF_ACCOUNT: u64 = 10;
/// Initial trades of a load unit on a day: 17,280 of a customer on 300 days.
pub(crate) const TRADES_OF_DAY: u64 = 57_600;
/// Seconds of a day of trading, and its beginning.
pub(crate) const DAY_S: u64 = 8 * 3600;
pub(crate) const OPENS_S: u64 = 9 * 3600;
/// Days of `daily_market`: 261 weeks.
pub(crate) const MARKET_DAYS: u64 = 1305;
/// Rows of fixed tables.
pub(crate) const INDUSTRIES: u64 = 102;
pub(crate) const SECTORS: u64 = 12;
pub(crate) const EXCHANGES: u64 = 4;
pub(crate) const TAX_RATES: u64 = 320;
pub(crate) const ZIP_CODES: u64 = 14_741;
/// The least and the most that a share costs, in cents.
pub(crate) const PRICES: (i64, i64) = (2000, 3000);
/// Numbers of shares that are traded.
pub(crate) const QUANTITIES: [i32; 4] = [100, 200, 400, 800];

/// A kind of trade: its code, its name, whether it sells, whether it is done at once.
pub(crate) const TRADE_TYPES: [(&str, &str, bool, bool); 5] = [
    ("MB", "Market-Buy", false, true),
    ("MS", "Market-Sell", true, true),
    ("LB", "Limit-Buy", false, false),
    ("LS", "Limit-Sell", true, false),
    ("SL", "Stop-Loss", true, false),
];

const FIRST_NAMES: [&str; 16] = [
    "Ada", "Boris", "Carla", "Dmitri", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Karim", "Lena",
    "Milan", "Nadia", "Oscar", "Paula",
];
const LAST_SYLLABLES: [&str; 16] = [
    "ber", "man", "dor", "lin", "kov", "son", "ter", "ley", "gar", "nor", "wal", "fin", "ros", "mar", "hol",
    "tan",
];
const COMPANY_WORDS: [&str; 16] = [
    "Northern", "United", "Pacific", "Central", "Alpine", "Royal", "Modern", "Delta", "Harbor", "Granite",
    "Silver", "Summit", "Coastal", "Prime", "Vector", "Golden",
];
const BRANCHES: [&str; 8] =
    ["Foods", "Motors", "Systems", "Energy", "Chemicals", "Airlines", "Holdings", "Instruments"];

/// A number that looks random and follows from two others (SplitMix64, Steele et al. 2014).
pub(crate) fn mixed(what: u64, number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(what << 56 | 0x5bd1_e995);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The accounts of a load unit, which all load units have alike.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// The tier of each customer, 1 to 3.
    tiers: Vec<u8>,
    /// Accounts of each customer.
    counts: Vec<u8>,
    /// Customer and place among the customer's, of each account.
    accounts: Vec<(u16, u8)>,
}

impl Layout {
    pub(crate) fn new() -> Layout {
        // As the law that draws customers scatters their ranks.
        let scramble = Scramble::new(CUSTOMERS, CUSTOMERS);
        let mut tiers = vec![0; CUSTOMERS as usize];
        for rank in 0..CUSTOMERS {
            tiers[scramble.apply(rank) as usize] = match rank {
                0..200 => 1,
                200..800 => 2,
                _ => 3,
            };
        }
        let count = |(customer, tier): (u64, &u8)| {
            let (least, most) = [(1, 4), (2, 8), (5, 10)][usize::from(*tier) - 1];
            (least + mixed(1, customer) % (most - least + 1)) as u8
        };
        let counts: Vec<u8> = (0..).zip(&tiers).map(count).collect();
        let accounts =
            (0..).zip(&counts).flat_map(|(customer, count)| (0..*count).map(move |place| (customer, place)));
        Layout { accounts: accounts.collect(), tiers, counts }
    }

    /// The tier of a customer of a load unit.
    pub(crate) fn tier(&self, customer: u64) -> u8 {
        self.tiers[customer as usize]
    }

    /// How many accounts a customer of a load unit has.
    pub(crate) fn count(&self, customer: u64) -> u64 {
        u64::from(self.counts[customer as usize])
    }

    /// Accounts of a load unit.
    pub(crate) fn accounts(&self) -> usize {
        self.accounts.len()
    }

    /// The number of an account of a load unit by its place, and its customer in the load unit.
    pub(crate) fn account(&self, unit: u64, place: usize) -> (u64, u64) {
        let (customer, own) = self.accounts[place];
        (account_number(unit, u64::from(customer), u64::from(own)), u64::from(customer))
    }
}

/// The number of a customer.
pub(crate) fn customer_number(unit: u64, customer: u64) -> u64 {
    unit * CUSTOMERS + customer + 1
}

/// The number of an account of a customer by its place among them.
pub(crate) fn account_number(unit: u64, customer: u64, place: u64) -> u64 {
    (unit * CUSTOMERS + customer) * ACCOUNTS_MAX + place + 1
}

/// The broker of an account.
pub(crate) fn broker_of(account: u64) -> u64 {
    let unit = (account - 1) / ACCOUNTS_MAX / CUSTOMERS;
    unit * BROKERS + mixed(2, account) % BROKERS + 1
}

/// How an account is taxed: 0 not, 1 withheld, 2 later.
pub(crate) fn tax_status(account: u64) -> u64 {
    mixed(3, account) % 3
}

/// The two tax rates of a customer, numbers from 1.
pub(crate) fn tax_rates_of(customer: u64) -> [u64; 2] {
    let first = mixed(4, customer) % (TAX_RATES / 2);
    [first + 1, TAX_RATES / 2 + mixed(5, customer) % (TAX_RATES / 2) + 1]
}

/// A tax rate in ten-thousandths.
pub(crate) fn tax_rate(number: u64) -> u64 {
    50 + number * 5
}

/// A commission in ten-thousandths of what is traded.
pub(crate) fn commission_rate(tier: u64, trade_type: usize, exchange: u64, quantity: i32) -> u64 {
    40 - 8 * tier + 3 * trade_type as u64 + exchange - quantity_range(quantity) * 2
}

/// Which of the four ranges of quantities one belongs to.
fn quantity_range(quantity: i32) -> u64 {
    let within = QUANTITY_RANGES.iter().position(|(from, to)| (*from..=*to).contains(&quantity));
    within.unwrap_or(0) as u64
}

/// The least and the most of each range of quantities.
pub(crate) const QUANTITY_RANGES: [(i32, i32); 4] = [(1, 100), (101, 200), (201, 400), (401, 1_000_000)];

/// What a trade is charged, in cents.
pub(crate) fn charge(tier: u64, trade_type: usize) -> u64 {
    150 * (4 - tier) + 100 * trade_type as u64
}

/// A security that an account trades in, of so many, by its place among them.
pub(crate) fn security_of(account: u64, place: u64, securities: u64) -> u64 {
    let (low, high) =
        (place * securities / SECURITIES_OF_ACCOUNT, (place + 1) * securities / SECURITIES_OF_ACCOUNT);
    low + mixed(6 + place, account) % (high - low)
}

/// The symbol of a security.
pub(crate) fn symbol(security: u64) -> String {
    format!("S{security:07}")
}

/// Company, from 1, and issue of a security.
pub(crate) fn company_of(security: u64) -> (u64, &'static str) {
    let (unit, own) = (security / SECURITIES, security % SECURITIES);
    match own < COMPANIES {
        true => (unit * COMPANIES + own + 1, "COMMON"),
        false => (unit * COMPANIES + own - COMPANIES + 1, "PREFERRED"),
    }
}

/// The exchange of a security, from 1.
pub(crate) fn exchange_of(security: u64) -> u64 {
    security % EXCHANGES + 1
}

/// The name of a company.
pub(crate) fn company_name(company: u64) -> String {
    let word = |what, words: &[&'static str]| words[(mixed(what, company) % words.len() as u64) as usize];
    format!("{} {} {company:06} Inc", word(20, &COMPANY_WORDS), word(21, &BRANCHES))
}

/// The name of a broker.
pub(crate) fn broker_name(broker: u64) -> String {
    let (first, last) = person(22, broker);
    format!("{first} {last} {broker}")
}

/// First and last name of somebody.
pub(crate) fn person(what: u64, number: u64) -> (&'static str, String) {
    let bits = mixed(what, number);
    let syllable = |shift: u64| LAST_SYLLABLES[(bits >> shift) as usize % LAST_SYLLABLES.len()];
    let mut last = format!("{}{}{}", syllable(8), syllable(16), syllable(24));
    last[..1].make_ascii_uppercase();
    (FIRST_NAMES[bits as usize % FIRST_NAMES.len()], last)
}

/// The tax number of a customer.
pub(crate) fn tax_id(customer: u64) -> String {
    format!("{:03}TX{customer:09}", mixed(23, customer) % 1000)
}

/// The name of an industry, from 1.
pub(crate) fn industry_name(industry: u64) -> String {
    format!("{} {} {industry}", COMPANY_WORDS[industry as usize % 16], BRANCHES[industry as usize % 8])
}

/// The name of a sector, from 1.
pub(crate) fn sector_name(sector: u64) -> String {
    format!("Sector {} {sector}", BRANCHES[sector as usize % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five accounts of a customer on average, as the facts have it.
    #[test]
    fn accounts_are_as_many_as_the_modelled_load_has() {
        let layout = Layout::new();
        assert!((4850..5150).contains(&layout.accounts()), "{}", layout.accounts());
        let of_tier = |tier| (0..CUSTOMERS).filter(|customer| layout.tier(*customer) == tier).count();
        assert_eq!([1, 2, 3].map(of_tier), [200, 600, 200]);
    }

    #[test]
    fn an_account_trades_in_ten_different_securities() {
        for securities in [SECURITIES, 7 * SECURITIES] {
            for account in [1, 77, 4999] {
                let mut own: Vec<u64> =
                    (0..SECURITIES_OF_ACCOUNT).map(|place| security_of(account, place, securities)).collect();
                own.dedup();
                assert!(own.len() == 10 && own.iter().all(|security| *security < securities), "{own:?}");
            }
        }
    }

    #[test]
    fn rates_are_numbers_from_1() {
        for tier in 1..=3 {
            for trade_type in 0..TRADE_TYPES.len() {
                for quantity in QUANTITIES {
                    assert!((1..100).contains(&commission_rate(tier, trade_type, 1, quantity)));
                }
            }
        }
    }
}
