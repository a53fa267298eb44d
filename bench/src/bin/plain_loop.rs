//! A minimal echo server: parse a line, validate it, echo it, log it.
//!
//! One thread, everything buffered, no queue, no cancellation, no deadline: the baseline for the overhead of the engine.

use std::io::{self, BufRead, BufWriter, Write};

use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let schema = json!({
        "type": "object",
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": ["string", "number"]},
            "method": {"type": "string"},
            "params": {
                "type": "object",
                "properties": {"value": true},
                "required": ["value"],
                "additionalProperties": false
            }
        },
        "required": ["jsonrpc", "id", "method", "params"],
        "additionalProperties": false
    });
    let validator = jsonschema::validator_for(&schema).map_err(io::Error::other)?;
    let mut output = BufWriter::new(io::stdout().lock());
    let mut log = BufWriter::new(io::stderr().lock());
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let request: Value = serde_json::from_slice(&line)?;
        if !validator.is_valid(&request) {
            return Err(io::Error::other("invalid request"));
        }
        let result = json!({"value": request["params"]["value"]});
        writeln!(output, "{}", json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))?;
        writeln!(
            log,
            "{}",
            json!({"requestId": request["id"], "method": request["method"], "status": "ok"})
        )?;
        if input.fill_buf().is_ok_and(<[u8]>::is_empty) {
            output.flush()?;
        }
    }
}
