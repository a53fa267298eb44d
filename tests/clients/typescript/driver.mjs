// Runs the TypeScript client against Pintle.
//
//   driver.mjs stdio BINARY --schemas DIR --examples DIR --backend URL --tools DIR
//   driver.mjs http URL --schemas DIR --examples DIR --backend URL --tools DIR
//
// Prints `ok CLIENT TRANSPORT PROMISE` for each promise that holds and stops at the first that does not.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { McpError } from "@modelcontextprotocol/sdk/types.js";

import {
  Broken,
  calls,
  cycle,
  demand,
  holds,
  isBad,
  isGood,
  isResource,
  names,
  options,
  promise,
  run,
  same,
  serveArguments,
  serverEnvironment,
  versionOf,
  within,
} from "../common.mjs";

const NAME = `typescript-${versionOf(import.meta.url, "@modelcontextprotocol/sdk")}`;
// Far beyond every patience here: it ends by cancelling or not at all.
const LONG_MS = 100_000;
const PROMPT_MS = 10_000;

const told = [];

function transport(folder) {
  if (options.transport === "http") return new StreamableHTTPClientTransport(new URL(options.target));
  const server = new StdioClientTransport({
    command: options.target,
    args: serveArguments,
    env: serverEnvironment(folder),
    stderr: "pipe",
  });
  server.stderr.on("data", (chunk) => told.push(chunk));
  return server;
}

async function errorOf(work) {
  try {
    throw new Broken(`expected an error, got the result ${JSON.stringify(await work)}`);
  } catch (error) {
    if (error instanceof McpError) return error;
    throw error;
  }
}

async function everything(folder) {
  const client = new Client({ name: "pintle-clients", version: "1.0.0" });
  const call = (name, given, settings) => client.callTool({ name, arguments: given }, undefined, settings);
  const read = (uri) => client.readResource({ uri });
  const check = (name, work) => promise(NAME, name, work);

  await check("connect", async () => {
    await client.connect(transport(folder));
    demand(client.getServerVersion()?.name === "pintle", "the server pintle", client.getServerVersion());
  });
  await check("tools/list", async () => {
    holds(names(calls.tools, "name"), names((await client.listTools()).tools, "name"));
  });
  for (const tool of calls.tools) {
    // What has no good call of its own is called well in the cycle.
    if (tool.good) await check(`${tool.name} well`, async () => isGood(tool, await call(tool.name, tool.good)));
    await check(`${tool.name} badly`, async () => isBad(await call(tool.name, tool.bad)));
  }
  await cycle(NAME, call, read);
  await check("unknown tool", async () => {
    const error = await errorOf(call("list_shemas", {}));
    demand(error.code === -32602, "the code -32602", error);
  });
  await check("resources/list", async () => {
    holds(calls.listed, names((await client.listResources()).resources, "uri"));
  });
  await check("resources/templates/list", async () => {
    const listed = (await client.listResourceTemplates()).resourceTemplates;
    holds(calls.templates, names(listed, "uriTemplate"));
  });
  for (const resource of calls.resources) {
    await check(`read ${resource.uri}`, async () => isResource(resource, await read(resource.uri)));
  }
  for (const uri of calls.missing) {
    await check(`read missing ${uri}`, async () => {
      const error = await errorOf(read(uri));
      demand(error.code === -32002 && error.data?.uri === uri, `-32002 with data.uri ${uri}`, error);
    });
  }
  await check("completion", async () => {
    const { template, argument, value, gives } = calls.completion;
    const answer = await client.complete({
      ref: { type: "ref/resource", uri: template },
      argument: { name: argument, value },
    });
    same(answer.completion.values, gives, answer);
  });
  await check("cancel", async () => {
    const reason = "enough";
    const abort = new AbortController();
    setTimeout(() => abort.abort(reason), 500);
    // A McpError may be the client's own word for the abort; only an answer would be wrong.
    const outcome = await call("test_sleep", { ms: LONG_MS }, { signal: abort.signal }).then(
      (result) => ({ result }),
      (error) => ({ error }),
    );
    demand(outcome.error && String(outcome.error).includes(reason), `the abort's reason, ${reason}`, {
      ...outcome,
      error: String(outcome.error),
    });
    await within(PROMPT_MS, client.ping());
    const result = await within(PROMPT_MS, call("test_echo", { value: "awake" }));
    same(result.structuredContent, { value: "awake" }, result);
  });
  await check("progress", async () => {
    const told = [];
    const onprogress = ({ progress, total }) => told.push({ progress, total });
    const result = await call("test_progress", { count: 8, everyMs: 300 }, { onprogress });
    same(result.structuredContent, { count: 8 }, result);
    demand(told.length >= 2, "at least two notifications before the result", told);
    const rising = told.every((event, index) => index === 0 || told[index - 1].progress < event.progress);
    demand(rising && told.every(({ total }) => total === 8), "rising progress of 8", told);
  });
  const command = async (step) => isGood(step, await call(step.tool, step.with));
  for (const step of calls.commands) await check(`command ${step.tool}`, () => command(step));
  // Writes a file of tests, and gives what has them run.
  const tests = async (name) => {
    const folder = `${NAME}-tests`;
    const result = await call("file_create", { path: `${folder}/${name}.py`, content: calls.runner[name] });
    demand(!result.isError, "a new file", result);
    return { folder, pattern: `${name}.py` };
  };
  await check("command run_tests with progress", async () => {
    const told = [];
    const onprogress = ({ message }) => told.push(message);
    const result = await call("run_tests", await tests("quick"), { onprogress });
    demand(!result.isError && result.structuredContent.stderr.includes("Ran 3 tests"), "three tests", result);
    demand(told.length >= 2 && told.some((line) => line.includes("test_")), "lines of the runner", told);
  });
  await check("command run_tests cancelled", async () => {
    const given = await tests("slow");
    const abort = new AbortController();
    setTimeout(() => abort.abort("enough"), 1000);
    const outcome = await call("run_tests", given, { signal: abort.signal }).then(
      (result) => ({ result }),
      (error) => ({ error: String(error) }),
    );
    demand(outcome.error?.includes("enough"), "the abort's reason", outcome);
    // One call runs at a time, and it is over when nothing is left of its processes.
    await within(PROMPT_MS, command(calls.commands[0]));
  });
  await within(PROMPT_MS, client.close());
}

await run(async (folder) => {
  try {
    await everything(folder);
  } catch (error) {
    if (told.length) console.error(`the server's standard error:\n${Buffer.concat(told)}`);
    throw error;
  }
});
