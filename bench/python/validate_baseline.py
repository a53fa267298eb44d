"""Validates one asset over and over with Python's jsonschema, compiled once. Prints calls a second."""

import json
import pathlib
import sys
import time

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

folder, schema_name, asset_path, seconds = sys.argv[1:5]
schemas = [json.loads(path.read_text()) for path in sorted(pathlib.Path(folder).glob("*.json"))]
registry = Registry().with_resources((schema["$id"], Resource.from_contents(schema)) for schema in schemas)
chosen = next(schema for schema in schemas if schema["$id"].endswith(f"/{schema_name}.schema.json"))
validator = Draft202012Validator(
    chosen, registry=registry, format_checker=Draft202012Validator.FORMAT_CHECKER
)
asset = json.loads(pathlib.Path(asset_path).read_text())
assert validator.is_valid(asset), list(validator.iter_errors(asset))

count, started = 0, time.perf_counter()
while time.perf_counter() - started < float(seconds):
    validator.validate(asset)
    count += 1
print(count / (time.perf_counter() - started))
