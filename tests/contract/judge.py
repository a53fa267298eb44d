"""Judges witnesses with Python's jsonschema: judge.py BINARY PAIRS

Compares all pairs in one call of `pintle contract diff`. Each witness has to be accepted by one schema of its pair and
rejected by the other, for a validator that has nothing in common with the one that found it.
"""

import json
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import jsonschema


def surface(pairs, side):
    tools = []
    for pair in pairs:
        tool = {"name": pair["name"], "inputSchema": {"type": "object"}}
        tool["inputSchema" if pair["side"] == "input" else "outputSchema"] = pair[side]
        tools.append(tool)
    return {"tools": tools}


def accepts(schema, value):
    validator = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    return validator(schema).is_valid(value)


def main():
    binary, file = sys.argv[1:]
    pairs = json.loads(Path(file).read_text())
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for side in ["old", "new"]:
            files.append(Path(folder) / f"{side}.json")
            files[-1].write_text(json.dumps(surface(pairs, side)))
        command = [binary, "contract", "diff", *files, "--json"]
        output = subprocess.run(command, stdout=subprocess.PIPE, timeout=300).stdout
    findings = json.loads(output)["findings"]
    judged = 0
    wrong = []
    for pair in pairs:
        accepted, rejected = ("old", "new") if pair["side"] == "input" else ("new", "old")
        for finding in findings:
            if finding["tool"] != pair["name"] or finding["verdict"] != "breaks":
                continue
            judged += 1
            witness = finding["witness"]
            if not accepts(pair[accepted], witness) or accepts(pair[rejected], witness):
                wrong.append(f"{pair['name']}: {json.dumps(witness)}")
    expected = sum(pair["verdict"] == "breaks" for pair in pairs)
    print(f"{len(pairs)} pairs, {judged} witnesses judged by jsonschema {version('jsonschema')}, {len(wrong)} wrong")
    print("\n".join(wrong), end="")
    sys.exit(1 if wrong or judged < expected else 0)


main()
