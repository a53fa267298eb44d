//! The table of ratios, and the same as JSON.

use std::{fs, path::Path, thread};

use serde_json::{Value, json};

use crate::drive;

/// What was measured.
#[derive(Default)]
pub struct Report {
    rows: Vec<Row>,
    /// Wrong results, which fail the run whatever the figures.
    failures: Vec<String>,
}

struct Row {
    name: String,
    ours: String,
    peer: String,
    figure: f64,
    bar: Bar,
}

/// The bar of a figure.
#[derive(Clone, Copy)]
pub enum Bar {
    AtLeast(f64),
    AtMost(f64),
    Below(f64),
    /// No bar: the figure is only reported.
    Reported,
}

impl Bar {
    fn met(self, figure: f64) -> Option<bool> {
        match self {
            Self::AtLeast(bar) => Some(figure >= bar),
            Self::AtMost(bar) => Some(figure <= bar),
            Self::Below(bar) => Some(figure < bar),
            Self::Reported => None,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtLeast(bar) => format!("at least {bar}"),
            Self::AtMost(bar) => format!("at most {bar}"),
            Self::Below(bar) => format!("below {bar}"),
            Self::Reported => String::new(),
        }
    }
}

impl Report {
    /// Adds a row; `ours` and `peer` are the readings behind `figure`.
    pub fn add(&mut self, name: &str, ours: String, peer: String, figure: f64, bar: Bar) {
        eprintln!("{name}: {figure:.2} ({ours}; {peer})");
        self.rows.push(Row { name: name.to_owned(), ours, peer, figure, bar });
    }

    /// Adds a row for readings that were taken in turn: the figure, which is returned, is the median of the ratios of
    /// the rounds.
    pub fn compare(
        &mut self,
        name: &str,
        unit: &dyn Fn(f64) -> String,
        ours: &[f64],
        peer: &[f64],
        bar: Bar,
    ) -> f64 {
        let mut ratios: Vec<f64> = ours.iter().zip(peer).map(|(ours, peer)| ours / peer).collect();
        ratios.sort_by(f64::total_cmp);
        let (low, high) = (ratios[ratios.len() / 4], ratios[ratios.len() * 3 / 4]);
        eprintln!("half of the rounds gave {low:.2} to {high:.2}:");
        let middle = |readings: &[f64]| unit(drive::median(readings.to_vec()));
        let figure = drive::median(ratios);
        self.add(name, middle(ours), middle(peer), figure, bar);
        figure
    }

    /// Adds a row for something that could not be measured here.
    pub fn leave_out(&mut self, name: &str, why: &str) {
        self.add(name, String::new(), why.to_owned(), f64::NAN, Bar::Reported);
    }

    /// Records a wrong result.
    pub fn fail(&mut self, what: &str) {
        eprintln!("WRONG: {what}");
        self.failures.push(what.to_owned());
    }

    /// Whether all results were right; a bar that is not met only shows in the table.
    pub fn is_sound(&self) -> bool {
        self.failures.is_empty()
    }

    pub fn print(&self) {
        let mut table = comfy_table::Table::new();
        table.load_style(comfy_table::presets::ASCII_MARKDOWN);
        table.set_header(["what", "pintle", "peer", "figure", "bar", "met"]);
        for row in &self.rows {
            let met = match row.bar.met(row.figure) {
                Some(true) => "yes",
                Some(false) => "NO",
                None => "",
            };
            let figure = if row.figure.is_nan() { String::new() } else { format!("{:.2}", row.figure) };
            table.add_row([&row.name, &row.ours, &row.peer, &figure, &row.bar.text(), met]);
        }
        println!("{table}");
        for failure in &self.failures {
            println!("WRONG: {failure}");
        }
    }

    /// Writes the table as JSON, with what was measured and when.
    pub fn write(&self, path: &Path) {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                json!({
                    "name": row.name, "pintle": row.ours, "peer": row.peer, "figure": row.figure,
                    "bar": row.bar.text(), "met": row.bar.met(row.figure),
                })
            })
            .collect();
        let report = json!({
            "date": today(), "pintle": drive::version(), "cores": thread::available_parallelism().map_or(0, usize::from),
            "rows": rows, "failures": self.failures,
        });
        fs::write(path, format!("{report:#}\n")).expect("the report can be written");
    }
}

/// The date, in UTC.
fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}
