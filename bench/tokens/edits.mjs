// How many tokens (o200k) a model writes for the arguments of an edit: means over places in real files, spread evenly.
// Usage: edits.mjs TOKENIZER FOLDER…
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join, relative } from 'node:path';

const [packages, ...folders] = process.argv.slice(2);
const require = createRequire(join(packages, 'package.json'));
const { getEncoding } = require('js-tiktoken');
const encoding = getEncoding('o200k_base');
const tokens = (value) => encoding.encode(JSON.stringify(value)).length;

const LANGUAGES = ['.c', '.rs', '.py', '.js'];
const FILES_OF_EACH = 40;
const PLACES_OF_EACH = 4;

/// The files of a language with 60 to 500 lines, some of them from all over the folders.
function files(extension) {
  const found = [];
  const walk = (root, folder) => {
    const entries = readdirSync(folder, { withFileTypes: true });
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = join(folder, entry.name);
      if (entry.isDirectory() && !['.git', 'target', '.cache'].includes(entry.name)) walk(root, path);
      if (entry.isFile() && entry.name.endsWith(extension)) found.push({ path, name: relative(root, path) });
    }
  };
  folders.forEach((folder) => walk(folder, folder));
  const wanted = [];
  const step = Math.max(1, Math.floor(found.length / (FILES_OF_EACH * 2)));
  for (let index = 0; index < found.length && wanted.length < FILES_OF_EACH; index += step) {
    const text = readFileSync(found[index].path, 'utf8');
    const lines = text.split('\n');
    if (lines.length >= 60 && lines.length <= 500) wanted.push({ ...found[index], text, lines });
  }
  return wanted;
}

/// The shortest run of whole lines around a place that occurs once in the file.
function unique(lines, start, count) {
  let [from, to] = [start, start + count];
  const text = lines.join('\n');
  for (;;) {
    const run = lines.slice(from, to).join('\n');
    if (text.indexOf(run) === text.lastIndexOf(run)) return [from, to];
    if (to < lines.length) to += 1;
    else if (from > 0) from -= 1;
    else return [from, to];
  }
}

/// What a model writes: the same lines with a word more.
const edited = (lines) => lines.map((line, index) => (index === 0 ? `${line} // changed` : line)).join('\n');

const sums = new Map();
const add = (name, count) => {
  const [sum, number] = sums.get(name) ?? [0, 0];
  sums.set(name, [sum + count, number + 1]);
};
for (const language of LANGUAGES) {
  for (const { name, text, lines } of files(language)) {
    const hash = createHash('sha256').update(text).digest('hex');
    const tag = hash.slice(0, 8);
    for (const count of [1, 5, 20]) {
      for (let place = 0; place < PLACES_OF_EACH; place += 1) {
        const start = Math.floor(((lines.length - count - 1) * (place + 0.5)) / PLACES_OF_EACH);
        const old = lines.slice(start, start + count);
        const range = [start + 1, start + 1 + count];
        const more = edited(old);
        const [from, to] = unique(lines, start, count);
        const around = lines.slice(from, start).concat(more.split('\n'), lines.slice(start + count, to));
        const forms = {
          'the new lines alone': more,
          'path, whole hash, lines, old, new': { path: name, hash, lines: range, old: old.join('\n'), new: more },
          'path, tag, lines, new': { path: name, hash: tag, lines: range, new: more },
          'path, old, new (string replacement)': { path: name, old: lines.slice(from, to).join('\n'), new: around.join('\n') },
        };
        for (const [form, call] of Object.entries(forms)) add(`${form}: ${count}`, tokens(call));
      }
    }
  }
}
for (const [name, [sum, number]] of sums) console.log(`${(sum / number).toFixed(1)}\t${name} lines (${number} calls)`);

// A rename in 9 places of 2 files, and one line in each of 9 files.
const rename = { query: 'read_config', replacement: 'load_config', word: true, path: 'src', expect: 9 };
console.log(`${tokens(rename)}\ttext.substitute: a rename in 9 places`);
const renames = ['src/config.rs', 'src/main.rs'].map((path, index) => ({
  path, hash: index ? '9f86d081' : '72bb8454', old: 'read_config', new: 'load_config', all: true, within: true,
}));
console.log(`${tokens({ edits: renames })}\ttext.edit: the same`);
const singles = Array.from({ length: 9 }, (_, index) => ({
  path: `src/${basename(renames[index % 2].path)}`, hash: createHash('sha256').update(`${index}`).digest('hex'),
  lines: [10 * index + 3, 10 * index + 4], old: '    let config = read_config(path)?;', new: '    let config = load_config(path)?;',
}));
console.log(`${singles.reduce((sum, call) => sum + tokens(call), 0)}\tnine calls of text.replace with the whole hash: the same`);
const lines = Array.from({ length: 9 }, (_, index) => ({
  path: `crates/part${index}/Cargo.toml`, hash: createHash('sha256').update(`${index}`).digest('hex').slice(0, 8),
  lines: [3, 4], new: 'version = "0.2.0"',
}));
console.log(`${tokens({ edits: lines })}\ttext.edit: one line in each of 9 files`);
const version = { query: 'version = "0.1.0"', replacement: 'version = "0.2.0"', path: 'Cargo.toml', expect: 9 };
console.log(`${tokens(version)}\ttext.substitute: the same line in each of 9 files`);
