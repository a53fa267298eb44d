// Runs the inspector's command line against Pintle, one process a question.
//
//   driver.mjs stdio BINARY --schemas DIR --examples DIR --backend URL --tools DIR
//   driver.mjs http URL --schemas DIR --examples DIR --backend URL --tools DIR
//
// Prints `ok CLIENT TRANSPORT PROMISE` for each promise that holds and stops at the first that does not.
// It can list, call and read; it has no completion, no cancel, and shows no progress.

import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import {
  calls,
  cycle,
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
  // Each question has a server of its own, and all have one root and one state.
  const environment = serverEnvironment(folder, parent);
  const settings = Object.entries(environment).flatMap(([name, value]) => ["-e", `${name}=${value}`]);
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
    const how = { env: { ...process.env, HOME: folder }, detached: true, stdio: ["ignore", "pipe", "pipe"] };
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

async function everything(folder, era, tools, resources, steps) {
  const client = `inspector-${VERSION}-${era}`;
  const check = (name, work) => promise(client, name, work);
  const call = async (name, given) => {
    const more = ["--tool-name", name, "--tool-args-json", JSON.stringify(given)];
    const answer = await ask(folder, era, "tools/call", more);
    const isTold = answer.result?.isError
      ? answer.status !== 0 && answer.error?.code === "tool_is_error"
      : answer.status === 0 && answer.result;
    demand(isTold, "a result and the exit that goes with it", answer);
    return answer.result;
  };
  const read = (uri) => good(folder, era, "resources/read", ["--uri", uri]);
  // The strict list also ends with a failure if a tool's schema is one that clients cannot take.
  await check("tools/list", async () => {
    const listed = await good(folder, era, "tools/list", ["--strict"]);
    holds(names(calls.tools, "name"), names(listed.tools, "name"));
  });
  for (const tool of tools) {
    // Two at a time: most of a run is the inspector's own start.
    // What has no good call of its own is called well in the cycle.
    const well =
      tool.good && check(`${tool.name} well`, async () => isGood(tool, await call(tool.name, tool.good)));
    const badly = check(`${tool.name} badly`, async () => isBad(await call(tool.name, tool.bad)));
    await Promise.all([well, badly]);
  }
  await cycle(client, call, read, steps);
  await check("resources/list", async () => {
    holds(calls.listed, names((await good(folder, era, "resources/list")).resources, "uri"));
  });
  await check("resources/templates/list", async () => {
    const listed = await good(folder, era, "resources/templates/list");
    holds(calls.templates, names(listed.resourceTemplates, "uriTemplate"));
  });
  for (const resource of resources) {
    await check(`read ${resource.uri}`, async () => isResource(resource, await read(resource.uri)));
  }
  const [uri] = calls.missing;
  await check(`read missing ${uri}`, async () => {
    const answer = await ask(folder, era, "resources/read", ["--uri", uri]);
    const name = uri.split("://")[1];
    demand(answer.status !== 0 && answer.error?.message.includes(name), `an error that names ${name}`, answer);
  });
}

await run(async (folder) => {
  await everything(folder, "legacy", calls.tools, calls.resources, calls.cycle);
  // A process a question is slow, and the tools are the same in both eras: one of each kind will do, and no cycle.
  await everything(folder, "modern", calls.tools.slice(1, 2), calls.resources.slice(0, 1), []);
});
