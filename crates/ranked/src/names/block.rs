//! The section of names as bytes, written.
//!
//! Distinct names stand in their order in blocks of [`NAMES`]. A block is
//!
//! - the number of bytes that the names take, two bytes;
//! - the names: for each how many bytes it shares with the one before it, how many more it has (four bits
//!   each; fifteen means that a byte with the rest follows), and these;
//! - bits: the number of definitions of each name; then the lowest file and the widths of the fields,
//!   which are the same for all definitions of the block; then the definitions.
//!
//! After the blocks come the letters of each name (see [`letters`](super::letters)), four bytes each; the
//! directory, for each block its offset in five bytes; and the footer.

use super::Definition;
use super::letters::letters_of;
use crate::bits::{BitWriter, width_of};
use crate::runs::Runs;
use std::io::{self, Write};
use std::path::Path;

/// How many names a block has; the last may have fewer.
pub(crate) const NAMES: usize = 16;
/// What is longer is cut.
pub(crate) const LONGEST_NAME: usize = 255;
/// What the footer ends with: a name and the version of the format.
pub(crate) const MAGIC: [u8; 8] = *b"PtlName1";
/// The footer: the number of names, the number of definitions, the number of files, and [`MAGIC`].
pub(crate) const FOOTER: usize = 8 + 8 + 4 + 8;
/// The bytes of an offset in the directory.
pub(crate) const OFFSET: usize = 5;

/// Writes blocks and what comes after them.
pub(crate) struct SectionWriter<'a> {
    out: &'a mut dyn Write,
    written: u64,
    directory: Vec<u8>,
    /// The letters of all names, kept until the blocks are written.
    letters: Runs,
    bytes: Vec<u8>,
    name_count: u64,
    definition_count: u64,
    /// The names of the current block, one after another as they will stand.
    names: Vec<u8>,
    last_name: Vec<u8>,
    counts: Vec<u64>,
    definitions: Vec<(u32, Definition)>,
}

impl<'a> SectionWriter<'a> {
    /// Writes to this; what comes last waits in the scratch folder.
    pub(crate) fn new(out: &'a mut dyn Write, scratch: Option<&Path>) -> Self {
        Self {
            out,
            written: 0,
            directory: Vec::new(),
            letters: Runs::new(scratch),
            bytes: Vec::new(),
            name_count: 0,
            definition_count: 0,
            names: Vec::new(),
            last_name: Vec::new(),
            counts: Vec::new(),
            definitions: Vec::new(),
        }
    }

    /// Adds a definition; they come in the order of names, then files.
    pub(crate) fn add(&mut self, name: &[u8], file: u32, definition: Definition) -> io::Result<()> {
        let is_new = self.counts.is_empty() || self.last_name != name;
        if is_new {
            if self.counts.len() == NAMES {
                self.end_block()?;
            }
            self.add_name(name);
            self.letters.write_piece()?;
        }
        if let Some(count) = self.counts.last_mut() {
            *count += 1;
        }
        self.definition_count += 1;
        self.definitions.push((file, definition));
        Ok(())
    }

    fn add_name(&mut self, name: &[u8]) {
        let shared = match self.counts.is_empty() {
            true => 0,
            false => self.last_name.iter().zip(name).take_while(|(one, other)| one == other).count(),
        };
        let more = name.len() - shared;
        self.names.push((shared.min(15) << 4 | more.min(15)) as u8);
        for length in [shared, more] {
            if let Some(rest) = length.checked_sub(15) {
                self.names.push(rest as u8);
            }
        }
        self.names.extend_from_slice(&name[shared..]);
        self.letters.piece().extend_from_slice(&letters_of(name).to_le_bytes());
        self.last_name.clear();
        self.last_name.extend_from_slice(name);
        self.counts.push(0);
        self.name_count += 1;
    }

    fn end_block(&mut self) -> io::Result<()> {
        if self.counts.is_empty() {
            return Ok(());
        }
        let offset = (self.written + self.bytes.len() as u64).to_le_bytes();
        self.directory.extend_from_slice(&offset[..OFFSET]);
        self.bytes.extend_from_slice(&(self.names.len() as u16).to_le_bytes());
        self.bytes.append(&mut self.names);
        let mut bits = BitWriter::default();
        for count in self.counts.drain(..) {
            bits.put_gamma(count);
        }
        let lowest = self.definitions.iter().map(|(file, _)| *file).min().unwrap_or_default();
        bits.put(u64::from(lowest), 32);
        let fields = |file: &u32, definition: &Definition| {
            let extent = definition.end_line.saturating_sub(definition.line);
            [file - lowest, definition.line, definition.column, extent, u32::from(definition.kind)]
        };
        let mut largest = [0; 5];
        for (file, definition) in &self.definitions {
            for (largest, field) in largest.iter_mut().zip(fields(file, definition)) {
                *largest = field.max(*largest);
            }
        }
        let mut widths = largest.map(|largest| width_of(u64::from(largest)));
        // No definition takes no space, so that their number is bounded by that of the bytes.
        widths[1] = widths[1].max(1);
        for width in widths {
            bits.put(u64::from(width), 6);
        }
        for (file, definition) in self.definitions.drain(..) {
            for (field, width) in fields(&file, &definition).into_iter().zip(widths) {
                bits.put(u64::from(field), width);
            }
        }
        bits.drain_into(&mut self.bytes);
        if self.bytes.len() >= 64 << 10 { self.write_out() } else { Ok(()) }
    }

    fn write_out(&mut self) -> io::Result<()> {
        self.out.write_all(&self.bytes)?;
        self.written += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }

    /// Writes the rest and returns the length of the section.
    pub(crate) fn finish(mut self, file_count: u32) -> io::Result<u64> {
        self.end_block()?;
        self.letters.end_run()?;
        let letters = std::mem::replace(&mut self.letters, Runs::new(None));
        for mut reader in letters.readers(64 << 10) {
            while !reader.is_done() {
                self.bytes.extend_from_slice(reader.bytes(4)?);
                if self.bytes.len() >= 64 << 10 {
                    self.write_out()?;
                }
            }
        }
        self.bytes.append(&mut self.directory);
        self.bytes.extend_from_slice(&self.name_count.to_le_bytes());
        self.bytes.extend_from_slice(&self.definition_count.to_le_bytes());
        self.bytes.extend_from_slice(&file_count.to_le_bytes());
        self.bytes.extend_from_slice(&MAGIC);
        self.write_out()?;
        Ok(self.written)
    }
}
