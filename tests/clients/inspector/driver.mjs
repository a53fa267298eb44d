// Runs the inspector's command line against Pintle, one process a question.
//
//   driver.mjs stdio BINARY --schemas DIR --examples DIR --backend URL
//   driver.mjs http URL --schemas DIR --examples DIR --backend URL
//
// Prints `ok CLIENT TRANSPORT PROMISE` for each promise that holds and stops at the first that does not.
// It can list, call and read; it has no completion, no cancel, and shows no progress.

import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import {
  calls,
  demand,
  holds,
  isBad,
  isGood,
  isResource,
  names,
  options,
  PATIENCE_MS,
  promise,
  run,
  serveArguments,
  serverEnvironment,
  versionOf,
} from "../common.mjs";

const PACKAGE = "@modelcontextprotocol/inspector";
const VERSION = versionOf(import.meta.url, PACKAGE);
const LAUNCHER = fileURLToPath(new URL(`node_modules/${PACKAGE}/clients/launcher/build/index.js`, import.meta.url));

/** What one run of the inspector says: its exit status, its result and its own error. */
function ask(parent, era, method, more = []) {
  const folder = mkdtempSync(join(parent, "server-"));
  const before = ["--cli", "--format", "json", "--quiet", "--protocol-era", era, "--method", method, ...more];
  const settings = Object.entries(serverEnvironment(folder)).flatMap(([name, value]) => ["-e", `${name}=${value}`]);
  const server =
    options.transport === "http"
      ? ["--transport", "http", "--server-url", options.target]
      : [...settings, "--", options.target, ...serveArguments];
  const parsed = (text) => {
    try {
      return JSON.parse(text);
    } catch {
      return undefined;
    }
  };
  return new Promise((resolve) => {
    // The inspector keeps settings in the home folder; those of whoever runs this are none of its business.
    const environment = { ...process.env, HOME: folder };
    const how = { env: environment, detached: true, stdio: ["ignore", "pipe", "pipe"] };
    const child = spawn(process.execPath, [LAUNCHER, ...before, ...server], how);
    const told = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"]) {
      child[name].setEncoding("utf8").on("data", (text) => (told[name] += text));
    }
    // Before patience ends, so that what it said so far can be told; and its server goes with it.
    const timer = setTimeout(() => process.kill(-child.pid, "SIGKILL"), PATIENCE_MS - 5_000);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      const { stdout, stderr } = told;
      resolve({ status: code ?? signal, result: parsed(stdout)?.result, error: parsed(stderr)?.error, ...told });
    });
  });
}

async function good(...question) {
  const answer = await ask(...question);
  demand(answer.status === 0 && answer.result, "exit status 0 and a result", answer);
  return answer.result;
}

const called = (tool, given) => ["--tool-name", tool.name, "--tool-args-json", JSON.stringify(given)];

async function everything(folder, era, tools, resources) {
  const check = (name, work) => promise(`inspector-${VERSION}-${era}`, name, work);
  // The strict list also ends with a failure if a tool's schema is one that clients cannot take.
  await check("tools/list", async () => {
    const listed = await good(folder, era, "tools/list", ["--strict"]);
    holds(names(calls.tools, "name"), names(listed.tools, "name"));
  });
  for (const tool of tools) {
    // Two at a time: most of a run is the inspector's own start.
    const well = check(`${tool.name} well`, async () => {
      isGood(tool, await good(folder, era, "tools/call", called(tool, tool.good)));
    });
    const badly = check(`${tool.name} badly`, async () => {
      const answer = await ask(folder, era, "tools/call", called(tool, tool.bad));
      demand(answer.status !== 0 && answer.error?.code === "tool_is_error", "the exit of a failed tool", answer);
      isBad(answer.result);
    });
    await Promise.all([well, badly]);
  }
  await check("resources/list", async () => {
    holds(names(calls.resources, "uri"), names((await good(folder, era, "resources/list")).resources, "uri"));
  });
  await check("resources/templates/list", async () => {
    const listed = await good(folder, era, "resources/templates/list");
    holds(calls.templates, names(listed.resourceTemplates, "uriTemplate"));
  });
  for (const resource of resources) {
    await check(`read ${resource.uri}`, async () => {
      isResource(resource, await good(folder, era, "resources/read", ["--uri", resource.uri]));
    });
  }
  const [uri] = calls.missing;
  await check(`read missing ${uri}`, async () => {
    const answer = await ask(folder, era, "resources/read", ["--uri", uri]);
    const name = uri.split("://")[1];
    demand(answer.status !== 0 && answer.error?.message.includes(name), `an error that names ${name}`, answer);
  });
}

await run(async (folder) => {
  await everything(folder, "legacy", calls.tools, calls.resources);
  // A process a question is slow, and the tools are the same in both eras: one of each kind will do.
  await everything(folder, "modern", calls.tools.slice(1, 2), calls.resources.slice(0, 1));
});
