"""Runs real agents against the server and a scripted model, and checks what reaches the model.

run.py --binary PINTLE --packages FOLDER --results FOLDER [--docs FILE] [AGENT…]
"""

import argparse
import ctypes
import datetime
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from model import Model, Step, squeezed
from setups import AGENTS, Context

HERE = Path(__file__).resolve().parent
SECONDS = 120

# What the server lists where no schemas, backend or bindings are configured.
TOOLS = ["check_status", "file_create", "file_list", "file_move", "file_read", "file_remove", "index_build",
         "index_status", "search", "show_file", "text_append", "text_insert", "text_read", "text_replace",
         "workspace_status"]
# Those that a model should not have to look for, where a client loads tools only as they are needed.
LOADED = {"file_create", "file_list", "search", "text_insert", "text_read", "text_replace"}
# What the APIs of models take for a name.
NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")

SEARCHED = "search_marker_9d2b"
READ = "read_marker_5c1e"
NOTES = f"first line\nsecond line\nthird line {READ}\n"
EDITED = NOTES.replace("second line", "a better line")
CREATED = "made by an agent\n"

CHECKS = ["tools", "search", "read", "error", "edit", "added", "known"]
TITLES = {"tools": "every tool, by its name", "search": "first search answers", "read": "a read is shown once",
          "error": "an error is shown", "edit": "files are changed",
          "added": "what it adds to a call does no harm", "known": "its name is in the data file"}


def script():
    digest = hashlib.sha256(NOTES.encode()).hexdigest()
    return [
        Step("search", {"query": SEARCHED}),
        Step("text.read", {"path": "notes.txt"}),
        Step("text.read", {"path": "missing.txt"}),
        Step("text.replace", {"path": "notes.txt", "hash": digest, "lines": [2, 3], "old": "second line",
                              "new": "a better line"}),
        Step("file.create", {"path": "made/new.txt", "content": CREATED}),
        Step("text.read", {"path": "src/found.rs"}, known={"path", "lines"}),
    ]


SEARCH, READING, FAILING, ADDING = 0, 1, 2, 5


def fill(root):
    """A root that nobody has seen before: no index, no state."""
    (root / "src").mkdir(parents=True)
    (root / "notes.txt").write_text(NOTES)
    for number in range(20):
        (root / "src" / f"part{number}.rs").write_text(f"fn part{number}() {{}}\n")
    (root / "src" / "found.rs").write_text(f"fn one() {{}}\nfn {SEARCHED}() {{}}\n")


def probe(binary, root, folder):
    """The message that the server itself gives for the call that fails."""
    folder.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "MCP_READY_FILE": str(folder / "ready"),
                   "PINTLE_STATE_DIR": str(folder / "state")}
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "text.read", "arguments": script()[FAILING].arguments}},
    ]
    text = "".join(json.dumps(message) + "\n" for message in asked)
    done = subprocess.run([binary, "serve", "--root", root], input=text, env=environment, capture_output=True,
                          text=True, timeout=60, check=True)
    for line in done.stdout.splitlines():
        answer = json.loads(line)
        if answer.get("id") == 2:
            return json.loads(answer["result"]["content"][0]["text"])["message"]
    sys.exit(f"the server did not answer: {done.stdout}{done.stderr}")


def descendants():
    """The processes that descend from this one."""
    children = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found, queue = [], [os.getpid()]
    while queue:
        for child in children.get(queue.pop(), []):
            found.append(child)
            queue.append(child)
    return found


def end_descendants():
    """Ends whatever an agent left running, each process by its number."""
    deadline = time.monotonic() + 10
    while left := descendants():
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        if time.monotonic() > deadline:
            sys.exit(f"processes {left} would not end")
        time.sleep(0.05)


def execute(setup, context, root, results):
    """Runs an agent to its end, or to the end of its time. Gives its exit code, or None."""
    home = context.home
    (home / "tmp").mkdir(parents=True, exist_ok=True)
    environment = {
        "PATH": f"{Path(context.native('node-linux-*/bin/node')).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home), "TMPDIR": str(home / "tmp"), "LANG": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1",
        "XDG_CONFIG_HOME": str(home / ".config"), "XDG_DATA_HOME": str(home / ".local/share"),
        "XDG_STATE_HOME": str(home / ".local/state"), "XDG_CACHE_HOME": str(home / ".cache"),
    } | setup.environment
    deadline = time.monotonic() + SECONDS
    code = None
    with open(results / "output.txt", "wb") as output:
        for command in [*setup.before, setup.command]:
            process = subprocess.Popen(command, cwd=root, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            try:
                code = process.wait(timeout=max(1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                code = None
            if code != 0:
                break
    end_descendants()
    return code


def plain(value):
    """What a model reads of a value, without the quoting of however many layers of JSON."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return re.sub(r"[\\\"'`]", "", text)


def frames(path):
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return []
    return [json.loads(line) for line in lines if line.startswith("{")]


def client_info(asked):
    """What the agent said of itself to the server: its name and the revision it speaks."""
    for frame in asked:
        params = frame.get("params") or {}
        if frame.get("method") == "initialize":
            return params.get("clientInfo", {}).get("name"), params.get("protocolVersion")
        meta = params.get("_meta") or {}
        info = meta.get("io.modelcontextprotocol/clientInfo")
        if info:
            return info.get("name"), meta.get("io.modelcontextprotocol/protocolVersion")
    return None, None


def listing(answered):
    """The names of the tools that the server listed to the agent."""
    for frame in answered:
        tools = (frame.get("result") or {}).get("tools")
        if tools is not None:
            return [tool["name"] for tool in tools]
    return []


def listed_as(identifier, name):
    """Whether the data file has this name for this client."""
    data = json.loads((HERE / "../../crates/wire/src/mcp/clients.json").read_text())
    for client in data["clients"]:
        if client["id"] == identifier:
            return any(name == pattern or pattern.endswith("*") and name.startswith(pattern[:-1])
                       for pattern in client["clientInfo"])
    return False


def check(identifier, model, root, message, info, listed, code):
    """What each check found: check → None where it holds, else what is wrong. Also how `text_read` is called."""
    found = {}
    shown = [request for request in model.requests if request.tools]

    # What the model was told of, at once or by name, of what the server listed.
    visible, loaded = {}, set()
    for request in shown:
        for name, namespace, _ in request.tools:
            visible[f"{namespace} {name}" if namespace else name] = name
        visible.update({name: name for name in request.deferred})
    for tool in listed:
        if shown and any(re.search(rf"(^|[_-]){tool}$", name) for name, _, _ in shown[0].tools):
            loaded.add(tool)
    ours = {called: name for called, name in visible.items()
            if "pintle" in called or any(squeezed(name) == squeezed(tool) for tool in listed)}
    refused = [name for name in ours.values() if not NAME.match(name)]
    unexpected = sorted(set(listed) - set(TOOLS))
    unlisted = sorted(set(TOOLS) - set(listed))
    absent = [tool for tool in listed if not any(re.search(rf"(^|[ _-]){re.escape(tool)}$", called) for called in ours)]
    late = sorted(LOADED - loaded)
    if not ours:
        found["tools"] = "no tool of the server reached the model"
    else:
        wrong = {"names that the models' APIs refuse": refused, "listed, but not expected": unexpected,
                 "expected, but not listed": unlisted, "not shown under their own names": absent,
                 "not loaded at once": late}
        said = [f"{what}: {', '.join(names[:3])}{', …' if names[3:] else ''}" for what, names in wrong.items() if names]
        found["tools"] = "; ".join(said) or None

    def result(step):
        for request in reversed(shown):
            if step in request.results:
                return plain(request.results[step][0]), request.results[step][1]
        return None, None

    search, _ = result(SEARCH)
    if search is None:
        found["search"] = "no result reached the model"
    elif "src/found.rs" not in search or SEARCHED not in search:
        found["search"] = f"the hit is not shown: {search[:160]}"
    else:
        found["search"] = None

    read, _ = result(READING)
    count = max((plain(request.body).count(READ) for request in shown), default=0)
    if read is None:
        found["read"] = "no result reached the model"
    else:
        found["read"] = None if count == 1 else f"shown {count} times"

    error, marked = result(FAILING)
    if error is None:
        found["error"] = "no result reached the model"
    elif "NOT_FOUND" not in error or plain(message) not in error:
        found["error"] = f"not the server's message: {error[:200]}"
    elif marked is False:
        found["error"] = "the message is not marked as an error"
    else:
        found["error"] = None

    notes = (root / "notes.txt").read_text()
    made = root / "made" / "new.txt"
    if notes != EDITED:
        found["edit"] = "notes.txt was not edited" if notes == NOTES else f"notes.txt has {notes!r}"
    elif not made.is_file() or made.read_text() != CREATED:
        found["edit"] = "made/new.txt was not created"
    else:
        found["edit"] = None

    added, _ = result(ADDING)
    if added is None:
        found["added"] = "no result reached the model"
    else:
        found["added"] = None if SEARCHED in added and "total_lines" in added else f"the call fails: {added[:300]}"

    name = info[0]
    found["known"] = None if name and listed_as(identifier, name) else f"it calls itself {name!r}"

    if code is None:
        found["edit"] = found["edit"] or f"the agent did not end within {SECONDS} s"
    elif code != 0:
        found["edit"] = found["edit"] or f"the agent ended with exit code {code}"
    example = next((called for called in ours if squeezed(called).count("text_read")), None)
    return found, example


def run(agent, arguments):
    identifier, title, package, start = agent
    results = Path(arguments.results) / identifier
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    folder = Path(tempfile.mkdtemp(prefix="pintle-agents-"))
    try:
        root = folder / "root"
        fill(root)
        message = probe(arguments.binary, root, folder / "probe")
        model = Model(script())
        server = [sys.executable, str(HERE / "tap.py"), str(folder / "server"), arguments.binary, "serve", "--root",
                  str(root)]
        context = Context(arguments.packages, folder / "home", root, server, model.port)
        begun = time.monotonic()
        code = execute(start(context), context, root, results)
        seconds = time.monotonic() - begun
        model.close()
        with open(results / "requests.jsonl", "w") as output:
            for request in model.requests:
                output.write(json.dumps({"api": request.api, "body": request.body}, ensure_ascii=False) + "\n")
        for name in ("to-server", "from-server", "stderr"):
            if (folder / "server" / name).exists():
                shutil.copy(folder / "server" / name, results / name)
        info = client_info(frames(results / "to-server"))
        found, example = check(identifier, model, root, message, info, listing(frames(results / "from-server")), code)
    finally:
        end_descendants()
        shutil.rmtree(folder, ignore_errors=True)
    version = json.loads((Path(arguments.packages) / "node_modules" / package / "package.json").read_text())["version"]
    return {"id": identifier, "title": title, "version": version, "name": info[0], "revision": info[1],
            "example": example, "found": found, "seconds": seconds, "code": code}


def table(rows):
    """The outcome for people and for the documentation."""
    lines = ["| agent | version | `clientInfo.name` | revision | `text_read` is called | "
             + " | ".join(TITLES[check] for check in CHECKS[:-1]) + " |",
             "| --- | --- | --- | --- | --- | " + " | ".join("---" for _ in CHECKS[:-1]) + " |"]
    for row in rows:
        cells = ["yes" if row["found"][check] is None else "**no**" for check in CHECKS[:-1]]
        lines.append(f"| {row['title']} | {row['version']} | `{row['name']}` | {row['revision']} | `{row['example']}` | "
                     + " | ".join(cells) + " |")
    return "\n".join(lines)


def document(path, rows, binary):
    """Puts the table between the two marks of the documentation."""
    version = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    today = datetime.date.today()
    text = path.read_text()
    begin, end = "<!-- agents: begin -->\n", "<!-- agents: end -->"
    head, _, rest = text.partition(begin)
    _, mark, tail = rest.partition(end)
    if not mark:
        sys.exit(f"{path} does not have the marks `{begin.strip()}` and `{end}`")
    said = f"Seen on {today.day} {today:%B %Y} with `{version}`:\n\n"
    path.write_text(f"{head}{begin}{said}{table(rows)}\n{end}{tail}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--packages", required=True)
    parser.add_argument("--results", required=True)
    parser.add_argument("--docs", type=Path)
    parser.add_argument("agents", nargs="*")
    arguments = parser.parse_args()
    known = [agent[0] for agent in AGENTS]
    for name in arguments.agents:
        if name not in known:
            parser.error(f"there is no agent {name!r}; the agents are {', '.join(known)}")

    # What an agent leaves behind becomes a child of this process, so that it can be found and ended.
    subreaper = 36
    ctypes.CDLL(None, use_errno=True).prctl(subreaper, 1, 0, 0, 0)

    # As in a keyboard interrupt, what is temporary is removed before the end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    rows = []
    for agent in AGENTS:
        if arguments.agents and agent[0] not in arguments.agents:
            continue
        row = run(agent, arguments)
        rows.append(row)
        failed = [check for check in CHECKS if row["found"][check] is not None]
        print(f"{row['title']} {row['version']}: {len(CHECKS) - len(failed)} of {len(CHECKS)} checks, "
              f"{row['seconds']:.0f} s", flush=True)
        for check_name in failed:
            print(f"  FAILED {TITLES[check_name]}: {row['found'][check_name]}", flush=True)
    print()
    print(table(rows))
    # A table of some of the agents would replace one of all.
    if arguments.docs and not arguments.agents:
        document(arguments.docs, rows, arguments.binary)
    sys.exit(any(found is not None for row in rows for found in row["found"].values()))


if __name__ == "__main__":
    main()
