// Runs the TypeScript client against a server that wants tokens.
//
//   tokens.mjs URL ENOUGH TOO_LITTLE
//
// ENOUGH is a token that grants writing, TOO_LITTLE one that grants only reading. Prints `ok CLIENT tokens PROMISE` for
// each promise that holds and stops at the first that does not.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import {
  StreamableHTTPClientTransport,
  StreamableHTTPError,
} from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const PATIENCE_MS = 30_000;
const [url, enough, tooLittle] = process.argv.slice(2);
const manifest = new URL("node_modules/@modelcontextprotocol/sdk/package.json", import.meta.url);
const NAME = `typescript-${JSON.parse(readFileSync(manifest, "utf8")).version}`;

/** A client with a token, or with none, and the responses that it got to what it sent. */
function prepare(token) {
  const responses = [];
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: token ? { headers: { authorization: `Bearer ${token}` } } : {},
    fetch: async (target, init) => {
      const response = await fetch(target, init);
      if (init?.method === "POST") responses.push(response);
      return response;
    },
  });
  const client = new Client({ name: "pintle-clients", version: "1.0.0" });
  return { client, responses, connect: () => client.connect(transport) };
}

const refusalOf = (work) =>
  work.then(
    (result) => assert.fail(`expected an error, got ${JSON.stringify(result)}`),
    (error) => {
      assert(error instanceof StreamableHTTPError, `an error of the transport, not ${error?.stack ?? error}`);
      return error;
    },
  );

async function check(promise, work) {
  const timer = setTimeout(() => {
    console.error(`BROKEN ${NAME} tokens ${promise}: expected an answer within ${PATIENCE_MS} ms, got none`);
    process.exit(1);
  }, PATIENCE_MS);
  try {
    await work();
  } catch (error) {
    console.error(`BROKEN ${NAME} tokens ${promise}: ${error?.stack ?? error}`);
    process.exit(1);
  }
  clearTimeout(timer);
  console.log(`ok ${NAME} tokens ${promise}`);
}

await check("a token works", async () => {
  const { client, responses, connect } = prepare(enough);
  await connect();
  const names = (await client.listTools()).tools.map(({ name }) => name);
  assert(names.includes("file_create") && names.includes("text_read"), `tools that read and write: ${names}`);
  const path = `${NAME}.txt`;
  const created = await client.callTool({ name: "file_create", arguments: { path, content: "hello\n" } });
  assert(!created.isError, JSON.stringify(created));
  const read = await client.callTool({ name: "text_read", arguments: { path } });
  assert.equal(read.structuredContent.content, "hello\n");
  assert(responses.every(({ ok }) => ok));
  await client.close();
});

await check("without a token it learns the way to one", async () => {
  const { responses, connect } = prepare();
  const error = await refusalOf(connect());
  assert.equal(error.code, 401);
  assert(error.message.includes("pintle token mint"), error.message);
  const challenge = responses[0].headers.get("www-authenticate");
  assert.equal(challenge, 'Bearer realm="pintle", error_description="no token was sent; `pintle token mint` prints one"');
});

await check("with too little it learns the scope", async () => {
  const { client, responses, connect } = prepare(tooLittle);
  await connect();
  const listed = await client.callTool({ name: "file_list", arguments: {} });
  assert(!listed.isError, JSON.stringify(listed));
  const path = `${NAME}-2.txt`;
  const error = await refusalOf(client.callTool({ name: "file_create", arguments: { path, content: "hello\n" } }));
  assert.equal(error.code, 403);
  assert(error.message.includes(`write:/${path}`), error.message);
  assert.equal(responses.at(-1).headers.get("www-authenticate"), null);
  // The session goes on.
  assert(!(await client.callTool({ name: "file_list", arguments: {} })).isError);
  await client.close();
});
process.exit(0);
