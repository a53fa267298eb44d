//! The table of ratios, and the same as JSON.

use std::{fs, path::Path};

use serde_json::{Value, json};

/// What was measured.
#[derive(Default)]
pub struct Report {
    rows: Vec<Row>,
}

struct Row {
    name: String,
    ours: String,
    peer: String,
    figure: f64,
    bar: Bar,
}

/// What the figure has to be.
#[derive(Clone, Copy)]
pub enum Bar {
    AtLeast(f64),
    AtMost(f64),
    Below(f64),
    /// Nothing: the figure is told, not judged.
    Told,
}

impl Bar {
    fn met(self, figure: f64) -> Option<bool> {
        match self {
            Self::AtLeast(bar) => Some(figure >= bar),
            Self::AtMost(bar) => Some(figure <= bar),
            Self::Below(bar) => Some(figure < bar),
            Self::Told => None,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtLeast(bar) => format!("at least {bar}"),
            Self::AtMost(bar) => format!("at most {bar}"),
            Self::Below(bar) => format!("below {bar}"),
            Self::Told => String::new(),
        }
    }
}

impl Report {
    /// Adds a row; `ours` and `peer` are the readings that `figure` was made from.
    pub fn add(&mut self, name: &str, ours: String, peer: String, figure: f64, bar: Bar) {
        eprintln!("{name}: {figure:.2} ({ours}; {peer})");
        self.rows.push(Row { name: name.to_owned(), ours, peer, figure, bar });
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
            let figure = format!("{:.2}", row.figure);
            table.add_row([&row.name, &row.ours, &row.peer, &figure, &row.bar.text(), met]);
        }
        println!("{table}");
    }

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
        fs::write(path, format!("{:#}\n", json!({ "rows": rows }))).expect("the report can be written");
    }
}
