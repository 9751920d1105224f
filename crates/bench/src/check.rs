//! Tests the conditions that always hold, all on one state of the database: also while a load runs, and after a crash.

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::address::Address;
use crate::error::BenchError;
use crate::load::Load;
use crate::load::state::State;
use crate::run::runtime;
use crate::watch::{Watch, unless_over};

/// Large joins and sums: they need memory, and no compiler. Both settings end with the transaction.
const BEGIN: &str =
    "begin isolation level repeatable read read only; set local work_mem = '64MB'; set local jit = off";

/// A condition that was tested.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tested {
    /// Its name.
    pub name: String,
    /// What must hold.
    pub text: String,
    /// Rows that were compared: indexes, warehouses, districts, customers or orders.
    pub compared: u64,
    /// Those that differ.
    pub wrong: u64,
    /// The first that differs: where it is, what was found, what was expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// How long it took, seconds.
    pub seconds: f64,
}

/// What the check has found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Checked {
    /// The database, without a password.
    pub database: String,
    /// The load.
    pub workload: String,
    /// How large it is, in words.
    pub scale: String,
    /// Whether all conditions hold.
    pub is_consistent: bool,
    /// The conditions.
    pub conditions: Vec<Tested>,
    /// Columns that no condition covers; empty in reports of older versions.
    #[serde(default)]
    pub not_covered: String,
}

/// Tests all conditions.
///
/// # Errors
/// No connection; no tables of a load, not those of `wanted`, or not all of them loaded; what the server refuses; an early end that `watch` wants.
pub fn check(address: &Address, wanted: Option<Load>, watch: Watch<'_>) -> Result<Checked, BenchError> {
    runtime()?.block_on(test(address, wanted, watch))
}

async fn test(address: &Address, wanted: Option<Load>, watch: Watch<'_>) -> Result<Checked, BenchError> {
    let (address, client, state) = State::open(address, wanted, watch).await?;
    let begin = async { client.batch_execute(BEGIN).await.map_err(BenchError::query("beginning the check")) };
    watch.asked("beginning the check", begin).await?;
    let all = state.scale.conditions();
    let count = all.len();
    let mut tested = Vec::new();
    for (number, condition) in (1..).zip(all) {
        (watch.say)(&format!("condition {number} of {count}: {}", condition.text));
        let began = Instant::now();
        let sql = condition.query();
        let row = unless_over(client.cancel_token(), client.query_one(&sql, &[]), watch.over()).await?;
        let row = row.map_err(BenchError::query(format!("condition {}", condition.name)))?;
        let first: Option<String> = row.get(2);
        tested.push(Tested {
            name: condition.name.to_owned(),
            text: condition.text.to_owned(),
            compared: row.get::<_, i64>(0) as u64,
            wrong: row.get::<_, i64>(1) as u64,
            first: first.map(|first| format!("{} {first}", condition.place)),
            seconds: began.elapsed().as_secs_f64(),
        });
    }
    let is_consistent = tested.iter().all(|one| one.wrong == 0);
    Ok(Checked {
        database: address.to_string(),
        workload: state.scale.load().name().to_owned(),
        scale: state.scale.to_string(),
        is_consistent,
        conditions: tested,
        not_covered: state.scale.load().not_covered().to_owned(),
    })
}
