"""A model that is a list of tool calls, behind the four APIs that agents speak to.

It listens on loopback, plays one step of its script a request, and keeps every request: what reached the model.
Which step is due is read from the request itself (how many of the script's calls have a result in it), so that
repeated and side requests do no harm.
"""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CALL = "call_step_"
# The step, outside the script, that loads the tools that a client has deferred.
LOAD = "load"


class Step:
    """A call of the script: the server's tool by its canonical name, and the arguments.

    Where `known` names the arguments that the server itself lists, the model also sets each flag that the client has
    added to them.
    """

    def __init__(self, tool, arguments, known=None):
        self.tool = tool
        self.arguments = arguments
        self.known = known

    def filled(self, definition):
        if self.known is None or definition is None:
            return self.arguments
        schema = next((definition[key] for key in ("input_schema", "parametersJsonSchema", "parameters")
                       if key in definition), {})
        added = {name: True for name, part in schema.get("properties", {}).items()
                 if name not in self.known and part.get("type") == "boolean"}
        return self.arguments | added


class Shown:
    """What one request showed to the model."""

    def __init__(self, api, body):
        self.api = api
        self.body = body
        self.tools = tools_of(api, body)
        self.results = results_of(api, body)
        # Names of tools that a client has not loaded, but tells the model of.
        self.deferred = sorted(set(re.findall(r"mcp__pintle__[A-Za-z0-9_-]+", json.dumps(body)))
                               - {tool[0] for tool in self.tools})


def squeezed(name):
    return re.sub(r"[^a-z0-9]", "_", name.lower())


def tools_of(api, body):
    """The tools in a request: (name to call, namespace or None, definition)."""
    found = []
    for tool in body.get("tools") or []:
        if api == "gemini":
            for function in tool.get("functionDeclarations") or []:
                found.append((function["name"], None, function))
        elif api == "chat":
            function = tool.get("function") or {}
            found.append((function.get("name", ""), None, function))
        elif tool.get("type") == "namespace":
            found += [(inner["name"], tool["name"], inner) for inner in tool.get("tools") or []]
        else:
            found.append((tool.get("name", ""), None, tool))
    return found


def results_of(api, body):
    """The results of the script's calls in a request: step → (what is shown, whether it is marked as an error)."""
    results = {}

    def keep(identifier, content, failed):
        if str(identifier or "").startswith(CALL):
            step = str(identifier)[len(CALL):]
            results[int(step) if step.isdigit() else step] = (content, failed)

    if api == "anthropic":
        for message in body.get("messages") or []:
            for block in message["content"] if isinstance(message["content"], list) else []:
                if block.get("type") == "tool_result":
                    keep(block.get("tool_use_id"), block.get("content"), bool(block.get("is_error")))
    elif api == "chat":
        for message in body.get("messages") or []:
            if message.get("role") == "tool":
                keep(message.get("tool_call_id"), message.get("content"), None)
    elif api == "responses":
        for item in body.get("input") if isinstance(body.get("input"), list) else []:
            if item.get("type") == "function_call_output":
                keep(item.get("call_id"), item.get("output"), None)
    else:
        parts = [part for content in body.get("contents") or [] for part in content.get("parts") or []]
        answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
        for index, answer in enumerate(answers):
            results[index] = (answer.get("response"), None)
    return results


class Model:
    """The scripted model, listening. `requests` has what it was shown, in order."""

    def __init__(self, steps):
        self.steps = steps
        self.requests = []
        self.lock = threading.Lock()
        handler = type("Bound", (Handler,), {"model": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, api, body):
        """The next call as (step, name, namespace, arguments), or None where only a text is due."""
        shown = Shown(api, body)
        with self.lock:
            self.requests.append(shown)
        if not shown.tools:
            return None
        due = 0
        while due in shown.results:
            due += 1
        if due == len(self.steps):
            return None
        step = self.steps[due]
        if named := self.find(shown.tools, step.tool):
            return due, named[0], named[1], step.filled(named[2])
        if deferred := self.find([(name, None, None) for name in shown.deferred], step.tool):
            if LOAD in shown.results:
                return due, deferred[0], None, step.arguments
            wanted = ",".join(shown.deferred)
            return LOAD, "ToolSearch", None, {"query": f"select:{wanted}", "max_results": 100}
        return None

    @staticmethod
    def find(tools, canonical):
        """The tool under whatever name the client gave it: it ends with ours, or ours is followed by a hash."""
        wanted = squeezed(canonical)
        ours = [tool for tool in tools if squeezed((tool[1] or "") + " " + tool[0]).count("pintle") or tool[0] in (canonical, wanted)]
        for pattern in (rf"(^|[^a-z0-9]|_){wanted}$", rf"(^|_){wanted}_[0-9a-f]{{6,}}$"):
            for tool in ours:
                if re.search(pattern, squeezed(tool[0])):
                    return tool
        return None


def anthropic(call):
    """The events of a streamed message."""
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": [],
             "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    if call:
        step, name, _, arguments = call
        block = {"type": "tool_use", "id": f"{CALL}{step}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        reason = "tool_use"
    else:
        block = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": "Done."}
        reason = "end_turn"
    yield "message_start", {"message": start}
    yield "content_block_start", {"index": 0, "content_block": block}
    yield "content_block_delta", {"index": 0, "delta": delta}
    yield "content_block_stop", {"index": 0}
    yield "message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 1}}
    yield "message_stop", {}


def anthropic_whole(call):
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "stop_sequence": None,
               "usage": {"input_tokens": 1, "output_tokens": 1}}
    if call:
        step, name, _, arguments = call
        content = {"type": "tool_use", "id": f"{CALL}{step}", "name": name, "input": arguments}
        return message | {"content": [content], "stop_reason": "tool_use"}
    return message | {"content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}


def chat_message(call):
    if not call:
        return {"role": "assistant", "content": "Done."}, "stop"
    step, name, _, arguments = call
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None,
            "tool_calls": [{"index": 0, "id": f"{CALL}{step}", "type": "function", "function": function}]}, "tool_calls"


def chat(call):
    """The chunks of a streamed chat completion."""
    message, reason = chat_message(call)
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    yield base | {"choices": [{"index": 0, "delta": message, "finish_reason": None}]}
    yield base | {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    yield base | {"choices": [], "usage": usage}


def chat_whole(call):
    message, reason = chat_message(call)
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}


def responses_item(call):
    if not call:
        return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Done.", "annotations": []}]}
    step, name, namespace, arguments = call
    item = {"type": "function_call", "id": f"fc_{step}", "call_id": f"{CALL}{step}", "name": name,
            "arguments": json.dumps(arguments), "status": "completed"}
    return item | ({"namespace": namespace} if namespace else {})


def responses_whole(call):
    return {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "scripted",
            "output": [responses_item(call)], "parallel_tool_calls": False, "tools": [],
            "usage": {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
                      "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2}}


def responses(call):
    """The events of a streamed response."""
    whole = responses_whole(call)
    yield "response.created", {"response": whole | {"status": "in_progress", "output": []}}
    yield "response.output_item.added", {"output_index": 0, "item": whole["output"][0]}
    yield "response.output_item.done", {"output_index": 0, "item": whole["output"][0]}
    yield "response.completed", {"response": whole}


def gemini(call):
    part = {"text": "Done."}
    if call:
        step, name, _, arguments = call
        part = {"functionCall": {"id": f"{CALL}{step}", "name": name, "args": arguments}}
    return {"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
            "modelVersion": "scripted"}


class Handler(BaseHTTPRequestHandler):
    """The APIs, told apart by their paths."""

    protocol_version = "HTTP/1.1"
    model = None

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.reply({})

    def do_GET(self):
        model = {"id": "scripted", "object": "model", "created": 1, "owned_by": "scripted", "type": "model",
                 "display_name": "scripted", "created_at": "2026-01-01T00:00:00Z"}
        self.reply({"object": "list", "data": [model], "has_more": False})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(body)
        except ValueError:
            return self.reply({"error": {"message": "not JSON"}}, 400)
        path = self.path.split("?")[0]
        if path.endswith(("/count_tokens", ":countTokens")):
            return self.reply({"input_tokens": 1, "totalTokens": 1})
        if path.endswith("/messages"):
            call = self.model.answer("anthropic", body)
            if body.get("stream"):
                return self.stream({"type": kind} | event for kind, event in anthropic(call))
            return self.reply(anthropic_whole(call))
        if path.endswith("/chat/completions"):
            call = self.model.answer("chat", body)
            if body.get("stream"):
                return self.stream(chat(call), end="data: [DONE]\n\n")
            return self.reply(chat_whole(call))
        if path.endswith("/responses"):
            call = self.model.answer("responses", body)
            if body.get("stream"):
                return self.stream({"type": kind} | event for kind, event in responses(call))
            return self.reply(responses_whole(call))
        if path.endswith(":streamGenerateContent"):
            return self.stream([gemini(self.model.answer("gemini", body))], named=False)
        if path.endswith(":generateContent"):
            return self.reply(gemini(self.model.answer("gemini", body)))
        return self.reply({"error": {"message": "no such path"}}, 404)

    def reply(self, body, status=200):
        body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def stream(self, events, end="", named=True):
        lines = []
        for number, event in enumerate(events):
            if named and "type" in event:
                lines.append(f"event: {event['type']}\n")
                if event["type"].startswith("response."):
                    event = event | {"sequence_number": number}
            lines.append(f"data: {json.dumps(event)}\n\n")
        body = ("".join(lines) + end).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
