"""Runs the Python client `mcp`, 1.x or 2.x, against a server that wants tokens.

    tokens.py URL ENOUGH TOO_LITTLE

ENOUGH is a token that grants writing, TOO_LITTLE one that grants only reading. Prints `ok CLIENT tokens PROMISE` for
each promise that holds and stops at the first that does not.
"""

import importlib
import json
import logging
import sys
from contextlib import asynccontextmanager

import anyio
from mcp.client.streamable_http import streamable_http_client

from driver import MAJOR, PATIENCE, VERSION, Broken, First, Second, demand

# The two majors have their own HTTP client each.
httpx = importlib.import_module("httpx" if MAJOR == 1 else "httpx2")


class Refused:
    """The refusals that a client got."""

    def __init__(self):
        self.answers = []

    async def note(self, response):
        if response.status_code >= 400:
            await response.aread()
            self.answers.append(response)

    def first(self, status):
        demand(self.answers, f"an answer with status {status}", "none")
        answer = self.answers[0]
        demand(answer.status_code == status, f"status {status}", [answer.status_code, answer.text])
        return answer, answer.json()["error"]


@asynccontextmanager
async def client_with(url, token, connected, refused):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    hooks = {"response": [refused.note]}
    async with httpx.AsyncClient(headers=headers, event_hooks=hooks, timeout=PATIENCE) as http_client:
        async with connected(streamable_http_client(url, http_client=http_client)) as client:
            yield client


def all_of(error):
    """The errors of a group, or the one error."""
    if isinstance(error, BaseExceptionGroup):
        return [single for member in error.exceptions for single in all_of(member)]
    return [error]


async def failure_of(work):
    try:
        result = await work
    except (Exception, BaseExceptionGroup) as error:
        demand(not any(isinstance(single, Broken) for single in all_of(error)), "no broken promise", repr(error))
        return error
    raise Broken(f"expected an error, got {json.dumps(result, default=str)}")


async def with_enough(url, token, connected, name):
    refused = Refused()
    async with client_with(url, token, connected, refused) as client:
        listed = {tool["name"] for tool in (await client.list_tools())["tools"]}
        demand({"file_create", "text_read"} <= listed, "tools that read and write", sorted(listed))
        result = await client.call("file_create", {"path": f"{name}.txt", "content": "hello\n"})
        demand(not result.get("isError"), "a new file", result)
        read = await client.call("text_read", {"path": f"{name}.txt"})
        demand(read["structuredContent"]["content"] == "hello\n", "its content", read)
    # Without a session there is nothing to listen to, and that is all that may be refused.
    unexpected = [answer.status_code for answer in refused.answers if answer.status_code != 405]
    demand(not unexpected, "no refusal", unexpected)


async def without(url, connected):
    refused = Refused()

    async def connect():
        async with client_with(url, None, connected, refused) as client:
            return await client.list_tools()

    await failure_of(connect())
    answer, error = refused.first(401)
    challenge = 'Bearer realm="pintle", error_description="no token was sent; `pintle token mint` prints one"'
    demand(answer.headers.get("www-authenticate") == challenge, challenge, dict(answer.headers))
    demand("pintle token mint" in error["data"]["hint"], "the way to a token", error)


async def with_too_little(url, token, connected, name):
    refused = Refused()

    async def create():
        async with client_with(url, token, connected, refused) as client:
            listed = await client.call("file_list", {})
            demand(not listed.get("isError"), "a list", listed)
            return await client.call("file_create", {"path": f"{name}-2.txt", "content": "hello\n"})

    failure = await failure_of(create())
    refused.answers = [answer for answer in refused.answers if answer.status_code != 405]
    answer, error = refused.first(403)
    scope = f"write:/{name}-2.txt"
    demand("www-authenticate" not in answer.headers, "no challenge", dict(answer.headers))
    demand(scope in error["message"] and error["data"]["details"]["scope"] == scope, f"the scope {scope}", error)
    # 1.x raises an error about the status alone.
    if MAJOR > 1:
        told = [str(single) for single in all_of(failure)]
        demand(any(scope in text for text in told), f"an error that names {scope}", told)


async def main(url, enough, too_little):
    if MAJOR == 1:
        eras = [(f"python-{VERSION}", First.connected)]
    else:
        eras = [
            (f"python-{VERSION}-{era}", lambda transport, mode=mode: Second.connected(transport, mode))
            for era, mode in [("handshake", "legacy"), ("stateless", "auto")]
        ]
    for name, connected in eras:
        for promise, check in [
            ("a token works", lambda: with_enough(url, enough, connected, name)),
            ("without a token it learns the way to one", lambda: without(url, connected)),
            ("with too little it learns the scope", lambda: with_too_little(url, too_little, connected, name)),
        ]:
            try:
                with anyio.fail_after(PATIENCE):
                    await check()
            except (Exception, BaseExceptionGroup) as error:
                sys.exit(f"BROKEN {name} tokens {promise}: {all_of(error)!r}")
            print(f"ok {name} tokens {promise}", flush=True)


if __name__ == "__main__":
    # The client logs each refusal with its trace.
    logging.disable(logging.CRITICAL)
    anyio.run(main, *sys.argv[1:4])
