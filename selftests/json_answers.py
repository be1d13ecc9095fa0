#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
json_answers.py SCHEMA <LINES: each is a command, a tab and the JSON that it
printed. Tells which of them are not as the schema has them, or have a key that it
does not have; the status is 1 then, and where there are no lines.
"""

import json
import sys

import jsonschema


def close(schema):
    """A key that is not documented is wrong, here."""
    if isinstance(schema, dict):
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
        for value in schema.values():
            close(value)
    elif isinstance(schema, list):
        for value in schema:
            close(value)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    close(schema["$defs"])
    checks = {command: jsonschema.Draft202012Validator(part)
              for command, part in schema["$defs"].items()}

    number = bad = 0
    for line in filter(str.strip, sys.stdin):
        command, answer = line.split("\t", 1)
        number += 1
        if command not in checks:
            bad += 1
            print(f"# {command}: not in the schema")
            continue
        for error in checks[command].iter_errors(json.loads(answer)):
            bad += 1
            print(f"# {command}: {error.json_path}: {error.message[:300]}")
    return 1 if bad or not number else 0


if __name__ == "__main__":
    sys.exit(main())
