"""Compares published versions of real MCP servers: servers.py BINARY FOLDER DOCUMENT [NAME…]

Each server of servers.json is installed in FOLDER, a folder for each version, started, and asked for its tools by
`pintle contract print`. Versions that follow each other are compared, and every break has to have its witness. A run of all
servers writes the table to DOCUMENT.
"""

import json
import os
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

INSTALL_TIMEOUT = 600
ASK_TIMEOUT = 180


def main():
    binary, folder, document, *names = sys.argv[1:]
    servers = json.loads((Path(__file__).parent / "servers.json").read_text())
    chosen = [server for server in servers if not names or server["name"] in names]
    rows, total, failed = [], Counter(), []
    for server in chosen:
        surfaces = {}
        for version in server["versions"]:
            try:
                surfaces[version] = surface(binary, Path(folder), server, version)
            except (subprocess.SubprocessError, OSError) as error:
                failed.append(f"{server['name']} {version}: {error}")
        read = [version for version in server["versions"] if version in surfaces]
        for old, new in zip(read, read[1:]):
            rows.append(compare(binary, server, old, new, surfaces, total))
            print(rows[-1], flush=True)
    changes = total["compatible"] + total["breaks"] + total["unknown"]
    decided = 100 * (changes - total["unknown"]) / max(changes, 1)
    summary = (
        f"{len(rows)} pairs of {len(chosen)} servers; {changes} changes of schemas, {decided:.1f} % of them decided: "
        f"{total['compatible']} compatible, {total['breaks']} breaking with a witness, {total['unknown']} unknown."
    )
    print(summary)
    print("\n".join(["not read:", *failed]) if failed else "every version was read")
    if not names:
        write(Path(document), rows, summary)
    sys.exit(1 if failed else 0)


def surface(binary, folder, server, version):
    """The file with the surface of one version."""
    place = folder / f"{server['name']}@{version}"
    file = folder / "surfaces" / f"{server['name']}@{version}.json"
    if file.exists():
        return file
    install(server, version, place)
    work, home = place / "work", place / "home"
    for path in [work, home, file.parent]:
        path.mkdir(parents=True, exist_ok=True)
    programs = place / ("node_modules/.bin" if server["ecosystem"] == "npm" else "venv/bin")

    def fill(text):
        text = text.replace("{bin}", str(programs)).replace("{work}", str(work))
        return text.replace("{package}", str(place / "node_modules" / server["package"]))

    command = " ".join(shlex.quote(fill(word)) for word in server["command"])
    environment = dict(os.environ, HOME=str(home), **{name: fill(text) for name, text in server["env"].items()})
    printed = subprocess.run(
        [binary, "contract", "print", "--server", f"exec {command}"],
        env=environment, cwd=work, stdout=subprocess.PIPE, timeout=ASK_TIMEOUT, check=True,
    ).stdout
    file.write_bytes(printed)
    return file


def install(server, version, place):
    if (place / ".ok").exists():
        return
    place.mkdir(parents=True, exist_ok=True)
    extra = server.get("with", {}).get(version, [])
    if server["ecosystem"] == "npm":
        (place / "package.json").write_text('{"private": true}')
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        commands = [["npm", "install", *options, "--prefix", place, f"{server['package']}@{version}", *extra]]
    else:
        commands = [
            [sys.executable, "-m", "venv", place / "venv"],
            [place / "venv/bin/pip", "install", "--quiet", f"{server['package']}=={version}", *extra],
        ]
    for command in commands:
        subprocess.run(command, stdout=subprocess.DEVNULL, timeout=INSTALL_TIMEOUT, check=True)
    (place / ".ok").touch()


def compare(binary, server, old, new, surfaces, total):
    command = [binary, "contract", "diff", surfaces[old], surfaces[new], "--json"]
    finished = subprocess.run(command, stdout=subprocess.PIPE, timeout=300)
    printed = json.loads(finished.stdout)
    schemas, tools = Counter(), Counter()
    for finding in printed["findings"]:
        if "Schema/" in finding["pointer"] or finding["pointer"].endswith("Schema"):
            schemas[finding["verdict"]] += 1
            if finding["verdict"] == "breaks" and "witness" not in finding:
                raise SystemExit(f"a break without a witness: {finding}")
        else:
            tools[finding["rule"]] += 1
    total.update(schemas)
    counts = [schemas["compatible"], schemas["breaks"], schemas["unknown"], tools["tool-removed"], tools["tool-added"]]
    cells = [server["name"], f"{old} → {new}", *map(str, counts), str(finished.returncode)]
    return "| " + " | ".join(cells) + " |"


def write(document, rows, summary):
    begin, end = "<!-- pairs -->\n", "<!-- /pairs -->"
    text = document.read_text()
    head, rest = text.split(begin)
    header = [
        "| server | versions | compatible | breaks | unknown | tools removed | added | exit code |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    table = "\n".join([summary, "", *header, *rows, ""])
    document.write_text(head + begin + table + end + rest.split(end)[1])


main()
