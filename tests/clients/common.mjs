// What the drivers in JavaScript share: their command line, how a promise is told, a server's setting, the cycle.

import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual, parseArgs } from "node:util";

export const calls = JSON.parse(readFileSync(new URL("calls.json", import.meta.url), "utf8"));

// For one answer; a busy machine gets there, a call that hangs does not keep us.
export const PATIENCE_MS = 30_000;

export const options = (() => {
  const text = { type: "string" };
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { schemas: text, examples: text, backend: text, tools: text },
  });
  const [transport, target] = positionals;
  const wanted = [values.schemas, values.examples, values.backend, values.tools];
  if (!["stdio", "http"].includes(transport) || !target || !wanted.every(Boolean)) {
    console.error("usage: driver.mjs stdio BINARY|http URL --schemas DIR --examples DIR --backend URL --tools DIR");
    process.exit(2);
  }
  return { transport, target, ...values };
})();

/** The installed version of a package beside the driver, whatever its `exports` let through. */
export function versionOf(driver, name) {
  return JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, driver), "utf8")).version;
}

export class Broken extends Error {}

export function demand(condition, expected, got) {
  if (!condition) throw new Broken(`expected ${expected}, got ${JSON.stringify(got)}`);
}

export function same(got, expected, whole = got) {
  demand(isDeepStrictEqual(got, expected), JSON.stringify(expected), whole);
}

export function holds(wanted, listed) {
  demand(wanted.every((name) => listed.includes(name)), `all of ${wanted.join(", ")}`, listed);
}

/** What the work gives, if it gives it in time. */
export async function within(milliseconds, work) {
  let timer;
  const late = new Promise((_, reject) => {
    const message = `expected an answer within ${milliseconds} ms, got none`;
    timer = setTimeout(() => reject(new Broken(message)), milliseconds);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

export async function promise(client, name, check) {
  const label = `${client} ${options.transport} ${name}`;
  try {
    await within(PATIENCE_MS, check());
  } catch (error) {
    const told = error instanceof Broken ? error.message : `expected no error, got ${error?.stack ?? error}`;
    throw new Broken(`${label}: ${told}`);
  }
  console.log(`ok ${label}`);
}

/** Runs a driver in a folder of its own and ends the process, even if something is still under way. */
export async function run(work) {
  const folder = mkdtempSync(join(tmpdir(), "pintle-client-"));
  let status = 0;
  try {
    await work(folder);
  } catch (error) {
    console.error(`BROKEN ${error instanceof Broken ? error.message : error?.stack ?? error}`);
    status = 1;
  }
  rmSync(folder, { recursive: true, force: true });
  process.exit(status);
}

// One call at a time: what follows a cancelled call is answered only if that call was really stopped.
export const serveArguments = ["serve", "--fixtures", "--running=1", "--log-level=off"];

/** Nothing of the machine's own state within the server's reach. */
export function serverEnvironment(folder, shared = folder) {
  mkdirSync(join(shared, "root"), { recursive: true });
  return {
    PINTLE_ROOT: join(shared, "root"),
    PINTLE_STATE_DIR: join(shared, "state"),
    MCP_READY_FILE: join(folder, "ready"),
    SYN_SCHEMAS_DIR: options.schemas,
    SYN_EXAMPLES_DIR: options.examples,
    SYN_BACKEND_URL: options.backend,
    PINTLE_TOOLS: options.tools,
  };
}

/** A part of calls.json with what is known by now in the place of its `$` texts. */
function filled(part, known) {
  const text = Object.entries(known).reduce(
    (text, [name, value]) => text.replaceAll(`"$${name}"`, () => JSON.stringify(value)),
    JSON.stringify(part),
  );
  return JSON.parse(text);
}

/**
 * Plays the cycle of a file, step by step. `call` and `read` put a question to the server; `$hash` is what the
 * server last gave for a hash, `$stale` the one before it, and `$sha256` what it has to be. `$hitHash`, `$hitLine`
 * and `$hitNext` are the first hit's of the last search that had one. A result is what a step `gives`, or more than
 * it `has`.
 */
export async function cycle(client, call, read, steps = calls.cycle) {
  const known = { draft: `${client}-draft.txt`, kept: `${client}.txt`, code: `${client}.rs` };
  for (const [index, step] of steps.entries()) {
    await promise(client, `cycle ${index + 1} ${step.tool ?? `read ${step.read}`}`, async () => {
      if (step.text) {
        known.text = step.text;
        known.sha256 = createHash("sha256").update(step.text).digest("hex");
        known.base64 = Buffer.from(step.text).toString("base64");
      }
      if (step.read) return isContent(step.read, filled(step.gives, known), await read(step.read));
      const result = await call(step.tool, filled(step.with, known));
      if (step.fails) return isBad(result, step.fails);
      if (step.has) holdsAtLeast(filled(step.has, known), result);
      else isGood({ gives: filled(step.gives, known) }, result);
      const { hash = known.hash, hits: [hit] = [] } = result.structuredContent;
      if (hit) Object.assign(known, { hitHash: hit.hash, hitLine: hit.line, hitNext: hit.line + 1 });
      if (hash !== known.hash) Object.assign(known, { hash, stale: known.hash });
    });
  }
}

function textOf(result) {
  demand(result.content.length === 1 && result.content[0].type === "text", "one text", result);
  return JSON.parse(result.content[0].text);
}

export function isGood(tool, result) {
  const gives = JSON.parse(JSON.stringify(tool.gives).replaceAll("BACKEND", options.backend));
  demand(!result.isError, "a success", result);
  same(result.structuredContent, gives, result);
  same(textOf(result), gives, result);
}

function holdsAtLeast(wanted, result) {
  demand(!result.isError, "a success", result);
  demand(covers(result.structuredContent, wanted), `at least ${JSON.stringify(wanted)}`, result);
  same(textOf(result), result.structuredContent, result);
}

/** Whether all that is wanted is there; a list has to have all its items and no others. */
function covers(got, wanted) {
  if (wanted === null || typeof wanted !== "object") return got === wanted;
  if (got === null || typeof got !== "object") return false;
  if (Array.isArray(wanted) && got.length !== wanted.length) return false;
  return Object.entries(wanted).every(([name, value]) => covers(got[name], value));
}

export function isBad(result, code = "INVALID_REQUEST") {
  demand(result.isError === true, "isError", result);
  demand(textOf(result).code === code, `the code ${code}`, result);
}

export function isResource(resource, result) {
  const file = join(options[resource.folder], resource.file);
  isContent(resource.uri, JSON.parse(readFileSync(file, "utf8")), result);
}

function isContent(uri, gives, { contents }) {
  demand(contents.length === 1 && contents[0].uri === uri, `one content of ${uri}`, contents);
  same(JSON.parse(contents[0].text), gives, contents);
}

export const names = (list, field) => list.map((item) => item[field]);
