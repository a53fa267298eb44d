"""Runs the Python client `mcp`, 1.x or 2.x, whichever is installed, against Pintle.

    driver.py stdio BINARY --schemas DIR --examples DIR --backend URL --tools DIR
    driver.py http URL --schemas DIR --examples DIR --backend URL --tools DIR

Prints `ok CLIENT TRANSPORT PROMISE` for each promise that holds and stops at the first that does not.
"""

import argparse
import base64
import hashlib
import json
import sys
import tempfile
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

import anyio
import mcp
from mcp import StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

VERSION = version("mcp")
MAJOR = int(VERSION.split(".")[0])
CALLS = json.loads((Path(__file__).parent.parent / "calls.json").read_text())

# For one answer; a busy machine gets there, a call that hangs does not keep us.
PATIENCE = 30
# For an answer that may not wait behind a call that was cancelled.
PROMPT = 10
# Far beyond every patience here: it ends by cancelling or not at all.
LONG_MS = 100_000

McpError = mcp.McpError if MAJOR == 1 else mcp.MCPError


class Broken(Exception):
    """A promise that does not hold."""


def demand(condition, expected, got):
    if not condition:
        raise Broken(f"expected {expected}, got {json.dumps(got, default=str)}")


def plain(model):
    """What was on the wire, so that both majors' models read alike."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


class First:
    """A session of 1.x."""

    protocol = "2025-11-25"
    missing_code = -32002

    def __init__(self, session):
        self.session = session

    @classmethod
    @asynccontextmanager
    async def connected(cls, transport):
        async with transport as (read, write, *_), mcp.ClientSession(read, write) as session:
            client = cls(session)
            client.spoken = (await session.initialize()).protocolVersion
            yield client

    async def list_tools(self):
        return plain(await self.session.list_tools())

    async def call(self, name, arguments, progress=None):
        return plain(await self.session.call_tool(name, arguments, progress_callback=progress))

    async def list_resources(self):
        return plain(await self.session.list_resources())

    async def list_templates(self):
        return plain(await self.session.list_resource_templates())

    async def read(self, uri):
        from pydantic import AnyUrl

        return plain(await self.session.read_resource(AnyUrl(uri)))

    async def complete(self, template, argument, value):
        reference = types.ResourceTemplateReference(type="ref/resource", uri=template)
        return plain(await self.session.complete(reference, {"name": argument, "value": value}))

    async def abandon(self, name, arguments, seconds):
        # 1.x forgets a call whose scope is cancelled and tells nobody: the notification is its user's to
        # send, and the id that it needs is kept in a private field only.
        request = self.session._request_id
        with anyio.move_on_after(seconds) as scope:
            await self.call(name, arguments)
        params = types.CancelledNotificationParams(requestId=request, reason="enough")
        notification = types.CancelledNotification(method="notifications/cancelled", params=params)
        await self.session.send_notification(types.ClientNotification(notification))
        return scope.cancelled_caught

    async def ping(self):
        await self.session.send_ping()


class Second:
    """A client of 2.x in one of its eras."""

    def __init__(self, client, mode):
        self.client = client
        self.spoken = client.protocol_version
        self.stateless = mode == "auto"
        self.protocol = "2026-07-28" if self.stateless else "2025-11-25"
        self.missing_code = -32602 if self.stateless else -32002

    @classmethod
    @asynccontextmanager
    async def connected(cls, transport, mode):
        # Without its cache, so that every question reaches the server.
        async with mcp.Client(transport, mode=mode, cache=None) as client:
            yield cls(client, mode)

    async def list_tools(self):
        return plain(await self.client.list_tools())

    async def call(self, name, arguments, progress=None):
        return plain(await self.client.call_tool(name, arguments, progress_callback=progress))

    async def list_resources(self):
        return plain(await self.client.list_resources())

    async def list_templates(self):
        return plain(await self.client.list_resource_templates())

    async def read(self, uri):
        return plain(await self.client.read_resource(uri))

    async def complete(self, template, argument, value):
        reference = types.ResourceTemplateReference(type="ref/resource", uri=template)
        return plain(await self.client.complete(reference, {"name": argument, "value": value}))

    async def abandon(self, name, arguments, seconds):
        with anyio.move_on_after(seconds) as scope:
            await self.call(name, arguments)
        return scope.cancelled_caught

    async def ping(self):
        # The stateless era has none.
        if not self.stateless:
            await self.client.session.send_ping()


def text_of(result):
    content = result["content"]
    demand(len(content) == 1 and content[0]["type"] == "text", "one text", content)
    return json.loads(content[0]["text"])


def is_good(gives, result):
    demand(not result.get("isError"), "a success", result)
    demand(result.get("structuredContent") == gives, f"structuredContent {json.dumps(gives)}", result)
    demand(text_of(result) == gives, "the same in the text", result)


def holds_at_least(wanted, result):
    demand(not result.get("isError"), "a success", result)
    demand(covers(result["structuredContent"], wanted), f"at least {json.dumps(wanted)}", result)
    demand(text_of(result) == result["structuredContent"], "the same as text", result)


def covers(got, wanted):
    """Whether all that is wanted is there; a list has to have all its items and no others."""
    if isinstance(wanted, dict):
        held = isinstance(got, dict) and wanted.keys() <= got.keys()
        return held and all(covers(got[name], value) for name, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(got, list) and len(got) == len(wanted) and all(map(covers, got, wanted))
    return got == wanted


def is_bad(code, result):
    demand(result.get("isError") is True, "isError", result)
    demand(text_of(result).get("code") == code, f"the code {code}", result)


def is_content(uri, gives, result):
    contents = result["contents"]
    demand(len(contents) == 1 and contents[0]["uri"] == uri, f"one content of {uri}", contents)
    demand(json.loads(contents[0]["text"]) == gives, json.dumps(gives), contents)


async def error_of(awaitable, expected):
    try:
        result = await awaitable
    except McpError as error:
        return error.error
    raise Broken(f"expected {expected}, got the result {json.dumps(result)}")


def filled(part, known):
    """A part of calls.json with what is known by now in the place of its `$` texts."""
    text = json.dumps(part)
    for name, value in known.items():
        text = text.replace(f'"${name}"', json.dumps(value))
    return json.loads(text)


class Run:
    def __init__(self, name, options):
        self.name = name
        self.label = f"{name} {options.transport}"
        self.options = options

    async def promise(self, name, check, *arguments):
        try:
            with anyio.fail_after(PATIENCE):
                await check(*arguments)
        except TimeoutError:
            self.broken(name, f"expected an answer within {PATIENCE} s, got none")
        except Broken as broken:
            self.broken(name, broken)
        except Exception as error:
            self.broken(name, f"expected no error, got {error!r}")
        print(f"ok {self.label} {name}", flush=True)

    def broken(self, name, what):
        # Told here: a client that is torn down in the middle may put an error of its own in the place of ours.
        sys.stderr.write(f"BROKEN {self.label} {name}: {what}\n")
        raise Broken

    async def everything(self, client):
        self.client = client
        await self.promise("protocol version", self.protocol)
        await self.promise("tools/list", self.tools)
        for tool in CALLS["tools"]:
            # What has no good call of its own is called well in the cycle.
            if "good" in tool:
                await self.promise(f"{tool['name']} well", self.well, tool)
            await self.promise(f"{tool['name']} badly", self.badly, tool)
        await self.cycle()
        await self.promise("unknown tool", self.unknown_tool)
        await self.promise("resources/list", self.resources)
        await self.promise("resources/templates/list", self.templates)
        for resource in CALLS["resources"]:
            await self.promise(f"read {resource['uri']}", self.read, resource)
        for uri in CALLS["missing"]:
            await self.promise(f"read missing {uri}", self.read_missing, uri)
        await self.promise("completion", self.completion)
        await self.promise("cancel", self.cancel)
        await self.promise("progress", self.progress)

    async def commands(self, client):
        self.client = client
        for step in CALLS["commands"]:
            await self.promise(f"command {step['tool']}", self.command, step)
        await self.promise("command run_tests with progress", self.run_tests)
        await self.promise("command run_tests cancelled", self.cancel_tests)

    async def protocol(self):
        demand(self.client.spoken == self.client.protocol, self.client.protocol, self.client.spoken)

    async def tools(self):
        listed = {tool["name"] for tool in (await self.client.list_tools())["tools"]}
        wanted = {tool["name"] for tool in CALLS["tools"]}
        demand(wanted <= listed, f"all of {sorted(wanted)}", sorted(listed))

    async def well(self, tool):
        gives = json.loads(json.dumps(tool["gives"]).replace("BACKEND", self.options.backend))
        is_good(gives, await self.client.call(tool["name"], tool["good"]))

    async def badly(self, tool):
        is_bad("INVALID_REQUEST", await self.client.call(tool["name"], tool["bad"]))

    async def cycle(self):
        """Plays the cycle of a file: `$hash` is what the server last gave for a hash, `$stale` the one before
        it, and `$sha256` what it has to be. `$hitHash`, `$hitLine` and `$hitNext` are the first hit's of the last
        search that had one. A result is what a step `gives`, or more than it `has`."""
        known = {"draft": f"{self.name}-draft.txt", "kept": f"{self.name}.txt", "code": f"{self.name}.rs"}
        for number, step in enumerate(CALLS["cycle"], 1):
            what = step.get("tool") or f"read {step['read']}"
            await self.promise(f"cycle {number} {what}", self.step, step, known)

    async def step(self, step, known):
        if "text" in step:
            stored = step["text"].encode()
            known["text"] = step["text"]
            known["sha256"] = hashlib.sha256(stored).hexdigest()
            known["base64"] = base64.b64encode(stored).decode()
        if "read" in step:
            return is_content(step["read"], filled(step["gives"], known), await self.client.read(step["read"]))
        result = await self.client.call(step["tool"], filled(step["with"], known))
        if "fails" in step:
            return is_bad(step["fails"], result)
        if "has" in step:
            holds_at_least(filled(step["has"], known), result)
        else:
            is_good(filled(step["gives"], known), result)
        for hit in result["structuredContent"].get("hits", [])[:1]:
            known.update(hitHash=hit["hash"], hitLine=hit["line"], hitNext=hit["line"] + 1)
        found = result["structuredContent"].get("hash", known.get("hash"))
        if found != known.get("hash"):
            known.update(hash=found, stale=known.get("hash"))

    async def unknown_tool(self):
        error = await error_of(self.client.call("list_shemas", {}), "an error")
        demand(error.code == -32602, "the code -32602", plain(error))

    async def resources(self):
        listed = {resource["uri"] for resource in (await self.client.list_resources())["resources"]}
        demand(set(CALLS["listed"]) <= listed, f"all of {CALLS['listed']}", sorted(listed))

    async def templates(self):
        answer = await self.client.list_templates()
        listed = {template["uriTemplate"] for template in answer["resourceTemplates"]}
        demand(set(CALLS["templates"]) <= listed, f"all of {CALLS['templates']}", sorted(listed))

    async def read(self, resource):
        file = Path(getattr(self.options, resource["folder"]), resource["file"])
        is_content(resource["uri"], json.loads(file.read_text()), await self.client.read(resource["uri"]))

    async def read_missing(self, uri):
        error = await error_of(self.client.read(uri), "an error")
        demand(error.code == self.client.missing_code, f"the code {self.client.missing_code}", plain(error))
        demand((error.data or {}).get("uri") == uri, f"data.uri {uri}", plain(error))

    async def completion(self):
        ask = CALLS["completion"]
        answer = await self.client.complete(ask["template"], ask["argument"], ask["value"])
        demand(answer["completion"]["values"] == ask["gives"], ask["gives"], answer)

    async def cancel(self):
        cancelled = await self.client.abandon("test_sleep", {"ms": LONG_MS}, 0.5)
        demand(cancelled, "a call that runs until it is cancelled", "an answer before that")
        # The server runs one call at a time: this one is answered only if the sleeper was really stopped.
        try:
            with anyio.fail_after(PROMPT):
                await self.client.ping()
                result = await self.client.call("test_echo", {"value": "awake"})
        except TimeoutError:
            raise Broken(f"expected an answer within {PROMPT} s after the cancel, got none") from None
        demand(result.get("structuredContent") == {"value": "awake"}, "the echo", result)

    async def progress(self):
        told = []

        async def note(progress, total, _message):
            told.append((progress, total))

        result = await self.client.call("test_progress", {"count": 8, "everyMs": 300}, progress=note)
        demand(result.get("structuredContent") == {"count": 8}, "the count 8", result)
        demand(len(told) >= 2, "at least two notifications before the result", told)
        rising = all(earlier[0] < later[0] for earlier, later in zip(told, told[1:]))
        demand(rising and all(total == 8 for _, total in told), "rising progress of 8", told)

    async def command(self, step):
        is_good(step["gives"], await self.client.call(step["tool"], step["with"]))

    async def tests(self, name):
        """Writes a file of tests, and gives what has them run."""
        folder, file = f"{self.name}-tests", f"{name}.py"
        given = {"path": f"{folder}/{file}", "content": CALLS["runner"][name]}
        result = await self.client.call("file_create", given)
        demand(not result.get("isError"), "a new file", result)
        return {"folder": folder, "pattern": file}

    async def run_tests(self):
        told = []

        async def note(_progress, _total, message):
            told.append(message)

        result = await self.client.call("run_tests", await self.tests("quick"), progress=note)
        demand(not result.get("isError"), "a success", result)
        demand("Ran 3 tests" in result["structuredContent"]["stderr"], "three tests", result)
        demand(len(told) >= 2 and any("test_" in line for line in told), "lines of the runner", told)

    async def cancel_tests(self):
        cancelled = await self.client.abandon("run_tests", await self.tests("slow"), 1)
        demand(cancelled, "a command that runs until it is cancelled", "an answer before that")
        # One call runs at a time, and it is over when nothing is left of its processes.
        try:
            with anyio.fail_after(PROMPT):
                await self.command(CALLS["commands"][0])
        except TimeoutError:
            raise Broken(f"expected an answer within {PROMPT} s after the cancel, got none") from None


@asynccontextmanager
async def transport_to(options):
    """A transport, and nothing of the machine's own state within the server's reach."""
    if options.transport == "http":
        yield streamable_http_client(options.target)
        return
    with tempfile.TemporaryDirectory() as folder, open(Path(folder, "stderr"), "w+") as errors:
        Path(folder, "root").mkdir()
        arguments = ["serve", "--fixtures", "--running=1", "--log-level=off"]
        environment = {
            "PINTLE_ROOT": f"{folder}/root",
            "PINTLE_STATE_DIR": f"{folder}/state",
            "MCP_READY_FILE": f"{folder}/ready",
            "SYN_SCHEMAS_DIR": options.schemas,
            "SYN_EXAMPLES_DIR": options.examples,
            "SYN_BACKEND_URL": options.backend,
            "PINTLE_TOOLS": options.tools,
        }
        server = StdioServerParameters(command=options.target, args=arguments, env=environment)
        try:
            yield stdio_client(server, errlog=errors)
        except BaseException:
            errors.seek(0)
            sys.stderr.write(f"the server's standard error:\n{errors.read()}")
            raise


async def main(options):
    if MAJOR == 1:
        eras = [(f"python-{VERSION}", First.connected)]
    else:
        eras = [
            (f"python-{VERSION}-{era}", lambda transport, mode=mode: Second.connected(transport, mode))
            for era, mode in [("handshake", "legacy"), ("stateless", "auto")]
        ]
    # Commands come last, because they leave folders in the root.
    for part in [Run.everything, Run.commands]:
        for name, connected in eras:
            # Longer than all promises of a healthy server together: for what hangs between them.
            with anyio.fail_after(4 * PATIENCE):
                async with transport_to(options) as transport, connected(transport) as client:
                    await part(Run(name, options), client)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("transport", choices=["stdio", "http"])
    parser.add_argument("target", metavar="BINARY|URL")
    for name in ["schemas", "examples", "backend", "tools"]:
        parser.add_argument(f"--{name}", required=True)
    return parser.parse_args()


if __name__ == "__main__":
    options = parse()
    try:
        anyio.run(main, options)
    except BaseException as error:
        sys.stderr.write(f"{options.transport} ended with {error!r}\n")
        sys.exit(1)
