//! The circle of `tier0 advise`: sample a run, plan, confirm by the twin, pin, run again, check; and the same run with two other
//! placements of the same size.
//!
//! The database lies on modelled disks beside a modelled flash group in the same pool. The flash holds [`SHARE`] of the database.
//! The others are: objects in a random order, and the largest objects first, each as far as they fit.
//!
//! A placement is measured when the tier has moved all parts: a few looks in a row at which nothing wants to move.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tier0_programs::process::Running;

use super::site::{Drives, Shape, Site, Stack};
use super::{Bench, number, tell};
use crate::bench::{table, write};
use crate::clock;
use crate::error::BenchError;

/// The part of the database for which there is flash.
const SHARE: f64 = 0.3;
/// The volume.
const VOLUME: &str = "lun0";
/// Time between samples, and what a run is longer than its samples.
const EVERY_SECONDS: u32 = 5;
const MARGIN_SECONDS: u32 = 4;
/// How long moves may take, how often they are looked at, and at how many looks in a row nothing moves when they are done.
const MOVES_SECONDS: f64 = 600.0;
const LOOK: Duration = Duration::from_secs(2);
const QUIET_LOOKS: u32 = 5;
/// The seed of the random placement.
const SEED: u64 = 1;
/// Tables and indexes with their sizes.
const OBJECTS: &str = "\
    select 'table', schemaname, relname, pg_table_size(relid) from pg_stat_user_tables union all \
    select 'index', schemaname, indexrelname, pg_relation_size(indexrelid) from pg_stat_user_indexes order by 2, 3";

/// A placement with what a run on it gave.
pub(super) struct Row {
    name: &'static str,
    objects: Vec<String>,
    bytes: f64,
    per_s: f64,
    p95_ms: f64,
}

/// What the circle gave.
pub(super) struct Circle {
    rows: Vec<Row>,
    plan: Value,
    checked: Value,
    flash_bytes: f64,
    database_bytes: f64,
}

/// A table or an index.
#[derive(Clone)]
struct Object {
    kind: String,
    schema: String,
    name: String,
    bytes: f64,
}

impl Bench {
    /// Goes round once.
    pub(super) fn circle(&self, place: Option<&Path>) -> Result<Circle, BenchError> {
        let site = Site::create(&self.program, place, self.extent.warehouses, Shape::Tiered)?;
        tell("circle: loading on plain files");
        let stack = Stack::start(&self.program, &site, &self.group, &self.extent, Drives::Files, true)?;
        self.prepare(&stack)?;
        stack.stop()?;
        tell("circle: starting on modelled disks and flash");
        let stack = Stack::start(&self.program, &site, &self.group, &self.extent, Drives::Modelled, false)?;
        let objects = objects(&stack)?;
        let database_bytes: f64 = objects.iter().map(|object| object.bytes).sum();
        let flash_bytes = (database_bytes * SHARE).floor();
        let (per_s, p95_ms) = self.sampled_run(&stack, "before")?;
        let mut rows = vec![Row { name: "before", objects: Vec::new(), bytes: 0.0, per_s, p95_ms }];
        let plan = self.plan(&stack, flash_bytes)?;
        let mut checked = Value::Null;
        for name in ["advised", "random", "by size"] {
            let (file, chosen) = match name {
                "advised" => (self.kept("circle-plan"), moves_of(&plan)),
                _ => {
                    let chosen = fill(&objects, flash_bytes, name == "random");
                    let file = self.kept(&format!("circle-plan-{}", name.replace(' ', "-")));
                    write(&file, &plan_of(&plan, &chosen).to_string())?;
                    (file, chosen)
                }
            };
            self.place(&stack, &file, name)?;
            let (per_s, p95_ms) = self.sampled_run(&stack, &name.replace(' ', "-"))?;
            let bytes = chosen.iter().map(|object| object.bytes).sum();
            let objects = chosen.into_iter().map(|object| object.name).collect();
            rows.push(Row { name, objects, bytes, per_s, p95_ms });
            if name == "advised" {
                let mut command = Command::new(&self.program);
                command.args(["advise", "check"]).arg(&file).arg(self.samples("advised")).arg("--json");
                checked = self.json_of("tier0 advise check", command, "circle-checked", &mut || {})?;
            }
        }
        stack.kill()?;
        Ok(Circle { rows, plan, checked, flash_bytes, database_bytes })
    }

    /// A run with samples of its measured part; gives transactions per second and p95.
    fn sampled_run(&self, stack: &Stack, name: &str) -> Result<(f64, f64), BenchError> {
        let (ramp_s, measured_s) = (self.extent.circle_ramp_s, self.extent.circle_s);
        tell(&format!("circle, {name}: {ramp_s} s of ramp, {measured_s} s measured"));
        let samples = self.samples(name);
        // Samples of an earlier use of the directory would be continued.
        _ = std::fs::remove_file(&samples);
        self.group.limit(Some(self.extent.memory_mib << 20))?;
        let mut command = self.load(stack, "nurand", ramp_s, measured_s);
        command.arg("--json");
        let began = clock::wall_s();
        let mut collecting: Option<Result<Running, BenchError>> = None;
        let mut look = || {
            if collecting.is_none() && clock::wall_s() - began > f64::from(ramp_s + MARGIN_SECONDS / 2) {
                collecting = Some(self.collect(stack, &samples, measured_s - MARGIN_SECONDS));
            }
        };
        let done = self.json_of("tier0 bench run", command, &format!("circle-{name}"), &mut look);
        self.group.limit(None)?;
        let told = done?;
        let collecting = collecting.unwrap_or_else(|| {
            Err(BenchError::Failed("the run was too short for samples; measure for longer".into()))
        });
        let status = collecting?.ends()?;
        if !status.success() {
            return Err(BenchError::Failed(format!("tier0 advise collect ended with {status}")));
        }
        let per_s = told["commits_per_minute"].as_f64().unwrap_or(0.0) / 60.0;
        Ok((per_s, told["response_ms"]["p95"].as_f64().unwrap_or(0.0)))
    }

    fn collect(&self, stack: &Stack, samples: &Path, seconds: u32) -> Result<Running, BenchError> {
        let mut command = Command::new(&self.program);
        command.args(["advise", "collect", "--dsn", &dsn(stack), "--every", &format!("{EVERY_SECONDS}s")]);
        command
            .args(["--for", &format!("{seconds}s"), "--out"])
            .arg(samples)
            .arg("--array")
            .arg(&stack.array);
        Ok(Running::start("tier0 advise collect", &mut command, &samples.with_extension("log"))?)
    }

    fn samples(&self, name: &str) -> PathBuf {
        self.keep.join(format!("circle-{name}.jsonl"))
    }

    /// The plan, confirmed by the twin.
    fn plan(&self, stack: &Stack, flash_bytes: f64) -> Result<Value, BenchError> {
        tell("circle: planning, and simulating the plan");
        let mut command = Command::new(&self.program);
        command.args(["advise", "plan"]).arg(self.samples("before"));
        command.args(["--flash", &format!("{flash_bytes:.0}B"), "--array"]).arg(&stack.array);
        command.arg("--next").arg(self.keep.join("circle-next.toml"));
        let plan = self.json_of("tier0 advise plan", command, "circle-plan", &mut || {})?;
        let told = plan["twin"]["answer"].as_array().into_iter().flatten().filter_map(Value::as_str);
        told.for_each(|line| tell(&format!("circle: {line}")));
        Ok(plan)
    }

    /// Ends all pins, pins the objects of a plan, and waits until all parts lie where they are to lie.
    fn place(&self, stack: &Stack, plan: &Path, name: &str) -> Result<(), BenchError> {
        let mut unpin = Command::new(&self.program);
        unpin.args(["volume", "unpin"]).arg(&stack.array).arg(VOLUME);
        self.words_of("tier0 volume unpin", unpin)?;
        self.until_moved(stack, &format!("{name}: moving back to disks"), |away| away == 0.0)?;
        let mut apply = Command::new(&self.program);
        apply.args(["advise", "apply"]).arg(plan).args(["--dsn", &dsn(stack), "--pin", "--yes", "--array"]);
        apply.arg(&stack.array).args(["--volume", VOLUME]);
        tell(&format!("circle, {name}: {}", self.words_of("tier0 advise apply", apply)?.trim()));
        self.until_moved(stack, &format!("{name}: moving to flash"), |away| away > 0.0)
    }

    fn words_of(&self, what: &str, mut command: Command) -> Result<String, BenchError> {
        let output = command.output().map_err(BenchError::system(format!("{what} cannot be started")))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(BenchError::Failed(format!(
                "{what} ended with {}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            ))),
        }
    }

    /// Waits until nothing moves and `is_there` holds for the bytes that lie on flash.
    fn until_moved(&self, stack: &Stack, what: &str, is_there: fn(f64) -> bool) -> Result<(), BenchError> {
        let until = clock::wall_s() + MOVES_SECONDS;
        let (mut quiet, mut before) = (0, f64::NAN);
        while quiet < QUIET_LOOKS {
            self.interrupt.check()?;
            if clock::wall_s() > until {
                return Err(BenchError::Failed(format!(
                    "{what} takes more than {MOVES_SECONDS:.0} s; tier0 status tells what holds it up"
                )));
            }
            let mut status = Command::new(&self.program);
            status.args(["status"]).arg(&stack.array).arg("--json");
            let output = status.output().map_err(BenchError::system("tier0 status cannot be started"))?;
            // Its exit code tells of warnings, which are no reason to end.
            let told: Value = serde_json::from_slice(&output.stdout)
                .map_err(|error| BenchError::Failed(format!("tier0 status: {error}")))?;
            let pool = &told["pools"][0];
            let away = pool["volumes"][0]["away_bytes"].as_f64().unwrap_or(0.0);
            let wanted = pool["tier"]["moves_wanted"].as_f64().unwrap_or(0.0);
            quiet = if wanted == 0.0 && away == before && is_there(away) { quiet + 1 } else { 0 };
            if away != before {
                tell(&format!(
                    "circle, {what}: {:.0} MiB on flash, {wanted:.0} moves wanted",
                    away / f64::from(1 << 20)
                ));
            }
            before = away;
            clock::pause(LOOK);
        }
        Ok(())
    }
}

impl Circle {
    /// The table, and what was predicted.
    pub(super) fn print(&self) {
        println!(
            "\ncircle: flash for {:.0} of {:.0} MB of the database, items nurand",
            self.flash_bytes / 1e6,
            self.database_bytes / 1e6
        );
        let mut rows =
            table(&["placement", "MB on flash", "transactions per second", "gain", "p95, ms", "objects"]);
        for row in &self.rows {
            rows.add_row([
                row.name.to_owned(),
                format!("{:.1}", row.bytes / 1e6),
                number(&json!(row.per_s)),
                percent(Some(self.gain(row))),
                number(&json!(row.p95_ms)),
                row.objects.join(", "),
            ]);
        }
        println!("{}", rows.trim_fmt());
        let measured = percent(self.checked["measured"].as_f64());
        println!("advised, by the samples of both runs: measured {measured}");
        for (name, gain) in
            [("mean value analysis", &self.plan["expected"]), ("twin", &self.plan["twin"]["gain"])]
        {
            let of = |field: &str| percent(gain[field].as_f64());
            println!("predicted by {name}: {} ({} to {})", of("expected"), of("low"), of("high"));
        }
    }

    fn gain(&self, row: &Row) -> f64 {
        row.per_s / self.rows[0].per_s.max(1e-9) - 1.0
    }

    /// All of it.
    pub(super) fn json(&self) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                json!({
                    "placement": row.name, "objects": row.objects, "bytes": row.bytes, "transactions_s": row.per_s,
                    "p95_ms": row.p95_ms, "gain": self.gain(row),
                })
            })
            .collect();
        json!({
            "database_bytes": self.database_bytes, "flash_bytes": self.flash_bytes, "placements": rows,
            "expected": self.plan["expected"], "twin": self.plan["twin"], "checked": self.checked,
        })
    }
}

fn percent(gain: Option<f64>) -> String {
    gain.map_or("not known".to_owned(), |gain| format!("{:+.0} %", gain * 100.0))
}

fn dsn(stack: &Stack) -> String {
    format!("host={} user=postgres dbname=postgres", stack.cluster.socket().display())
}

fn objects(stack: &Stack) -> Result<Vec<Object>, BenchError> {
    let told = stack.cluster.query(OBJECTS)?;
    let object = |line: &str| {
        let mut fields = line.split('|').map(str::to_owned);
        let (kind, schema, name) = (fields.next()?, fields.next()?, fields.next()?);
        Some(Object { kind, schema, name, bytes: fields.next()?.trim().parse().ok()? })
    };
    let objects: Vec<Object> = told.lines().filter_map(object).collect();
    match objects.is_empty() {
        true => Err(BenchError::Failed(format!("the database lists no tables: {told}"))),
        false => Ok(objects),
    }
}

/// Objects as far as they fit: in a random order, or the largest first.
fn fill(objects: &[Object], space: f64, is_random: bool) -> Vec<Object> {
    let mut order: Vec<&Object> = objects.iter().filter(|object| object.bytes > 0.0).collect();
    match is_random {
        false => order.sort_by(|a, b| b.bytes.total_cmp(&a.bytes)),
        // Each object has a number of a fixed sequence (splitmix64).
        true => {
            let mut state = SEED;
            order.sort_by_cached_key(|_| {
                state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                mixed ^ (mixed >> 31)
            });
        }
    }
    let mut room = space;
    let mut chosen = Vec::new();
    for object in order {
        if object.bytes <= room {
            room -= object.bytes;
            chosen.push(object.clone());
        }
    }
    chosen
}

/// A plan of other objects, without a prediction.
fn plan_of(advised: &Value, chosen: &[Object]) -> Value {
    let mut plan = advised.clone();
    let moves = chosen.iter().map(|object| {
        json!({
            "object": format!("{}.{}", object.schema, object.name), "database": object.schema, "name": object.name,
            "is_postgresql": true, "kind": object.kind, "bytes": object.bytes, "ms_per_io": null, "gain": null,
            "statements": [],
        })
    });
    plan["moves"] = moves.collect();
    plan["used_bytes"] = chosen.iter().map(|object| object.bytes).sum::<f64>().into();
    plan["expected"] = Value::Null;
    plan["left_out"] = json!([]);
    plan["answer"] = json!([]);
    if let Some(fields) = plan.as_object_mut() {
        fields.remove("twin");
    }
    plan
}

fn moves_of(plan: &Value) -> Vec<Object> {
    let text = |one: &Value, field: &str| one[field].as_str().unwrap_or_default().to_owned();
    let moves = plan["moves"].as_array().into_iter().flatten();
    moves
        .map(|one| Object {
            kind: text(one, "kind"),
            schema: text(one, "database"),
            name: text(one, "name"),
            bytes: one["bytes"].as_f64().unwrap_or(0.0),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_placements_fit_and_differ() {
        let object = |number: u32| Object {
            kind: "table".into(),
            schema: "public".into(),
            name: format!("t{number}"),
            bytes: f64::from(number) * 10.0,
        };
        let objects: Vec<Object> = (1..=9).map(object).collect();
        let names = |is_random: bool| -> Vec<String> {
            let chosen = fill(&objects, 120.0, is_random);
            assert!(chosen.iter().map(|object| object.bytes).sum::<f64>() <= 120.0);
            chosen.into_iter().map(|object| object.name).collect()
        };
        assert_eq!(names(false), ["t9", "t3"]);
        assert!(names(true) != names(false) && names(true) == names(true));
        let plan = plan_of(&json!({ "tier0": "placement-plan", "twin": {} }), &objects[..1]);
        assert_eq!(plan["moves"][0]["object"], "public.t1");
        assert!(plan.get("twin").is_none() && plan["expected"].is_null());
        assert_eq!(moves_of(&plan)[0].name, "t1");
    }
}
