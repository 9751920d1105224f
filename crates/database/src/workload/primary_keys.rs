//! Primary keys of engines whose tables are heaps: an index beside each table, whose leaf a row is found by.
//!
//! An engine that keeps a table in the order of its key needs none: the key's leaf is the row's page. Inner levels of an index are
//! taken to stay in memory.

use super::{Act, At, Growth, Object, Step, Workload};

impl Workload {
    /// The same with an index for the primary key of each table that names one (`stock-pkey` of `stock`): it is read before a row
    /// that is found by its key, and grows with its table.
    pub fn with_primary_keys(mut self) -> Workload {
        let mut key_of = vec![None; self.objects.len()];
        for (table, key_of) in key_of.iter_mut().enumerate() {
            let Some(key) = primary_key(&self.objects[table], table) else { continue };
            *key_of = Some(self.objects.len());
            self.objects.push(key);
        }
        for transaction in &mut self.transactions {
            transaction.steps = with_keys(std::mem::take(&mut transaction.steps), &key_of);
        }
        self
    }
}

fn primary_key(table: &Object, place: usize) -> Option<Object> {
    let growth = table.growth.as_ref().map(|growth| Growth { keeps: None, ..growth.clone() });
    table.primary_key_bytes.map(|row_bytes| Object {
        name: format!("{}-pkey", table.name),
        row_bytes,
        growth,
        index_of: Some(place),
        primary_key_bytes: None,
        is_filled_at_random: false,
        ..table.clone()
    })
}

fn with_keys(steps: Vec<Step>, key_of: &[Option<usize>]) -> Vec<Step> {
    let mut all = Vec::new();
    for mut step in steps {
        let probability = step.probability;
        let (mut before, mut behind) = (None, None);
        let read = |object: usize, rows: u64, at: At| {
            let key = key_of[object]?;
            Some(Act::Touch { object: key, update: false, rows, at, hold: false, direct: false })
        };
        match &mut step.act {
            Act::Touch { object, rows, at, direct: false, .. } => before = read(*object, *rows, *at),
            Act::Append { object } => behind = key_of[*object].map(|object| Act::Append { object }),
            Act::Take { object, .. } => behind = read(*object, 1, At::Sequence),
            Act::Repeat { steps, .. } | Act::Each { steps, .. } | Act::Recall { steps, .. } => {
                *steps = with_keys(std::mem::take(steps), key_of);
            }
            _ => {}
        }
        let both = [before, behind].map(|act| act.map(|act| Step { probability: 1.0, act }));
        let [before, behind] = both;
        let together = before.into_iter().chain([Step { probability: 1.0, act: step.act }]).chain(behind);
        // A step that is taken with some probability takes its key with it.
        match probability < 1.0 {
            true => all.push(Step {
                probability,
                act: Act::Repeat {
                    least: 1,
                    most: 1,
                    within: None,
                    is_list: false,
                    steps: together.collect(),
                },
            }),
            false => all.extend(together),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Changes;

    #[test]
    fn a_row_is_found_by_its_key_and_a_new_one_has_one() {
        let plain = Workload::find("order-entry", &Changes::default()).expect("it is embedded");
        let objects = plain.objects.len();
        let keyed = plain.with_primary_keys();
        let names: Vec<&str> = keyed.objects[objects..].iter().map(|object| object.name.as_str()).collect();
        assert!(names.contains(&"stock-pkey") && !names.contains(&"history-pkey"), "{names:?}");
        let steps =
            &keyed.transactions.iter().find(|one| one.name == "new-order").expect("it is there").steps;
        let touched: Vec<String> = steps
            .iter()
            .filter_map(|step| match step.act {
                Act::Touch { object, update, .. } => Some(format!("{update} {}", keyed.objects[object].name)),
                Act::Append { object } => Some(format!("+ {}", keyed.objects[object].name)),
                _ => None,
            })
            .collect();
        let expected = [
            "false warehouse-pkey",
            "false warehouse",
            "false district-pkey",
            "true district",
            "false customer-pkey",
            "false customer",
            "+ orders",
            "+ orders-pkey",
            "true orders-by-customer",
            "+ new-order",
            "+ new-order-pkey",
        ];
        assert_eq!(touched, expected);
    }
}
