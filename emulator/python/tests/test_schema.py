"""Files of a run and the schemas that `tipsim schema` prints of them."""

import json
import subprocess

import jsonschema
import pytest


def schema_of(binary, name):
    printed = subprocess.run([binary, "schema", name], check=True, capture_output=True, text=True)
    return json.loads(printed.stdout)


def names(binary):
    listed = subprocess.run([binary, "schema"], check=True, capture_output=True, text=True)
    return [line.split()[0] for line in listed.stdout.splitlines()]


def closed(schema):
    """The schema, but a key that it does not name is an error."""
    if isinstance(schema, dict):
        below = {key: closed(value) for key, value in schema.items()}
        return {"additionalProperties": False, **below} if isinstance(schema.get("properties"), dict) else below
    return [closed(value) for value in schema] if isinstance(schema, list) else schema


def test_files_of_a_run_are_as_their_schemas_say(run, binary):
    checked = []
    for name in names(binary):
        schema = schema_of(binary, name)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["title"] == name
        if (run.folder / name).exists():
            content = run.trace.metadata if name == "trace.tip" else json.loads((run.folder / name).read_text())
            jsonschema.Draft202012Validator(closed(schema)).validate(content)
            checked.append(name)
    assert {"run.json", "report.json", "errors.json", "flame.json", "trace.tip"} <= set(checked)


def test_a_schema_refuses_what_is_not_written(run, binary):
    validator = jsonschema.Draft202012Validator(schema_of(binary, "report"))
    for change in ({"format": 2}, {"totals": {}}, {"processes": [{"name": "all"}]}):
        with pytest.raises(jsonschema.ValidationError):
            validator.validate({**run.report, **change})
    validator.validate({**run.report, "new": "a later key"})


def test_an_unknown_name_is_an_error(binary):
    failed = subprocess.run([binary, "schema", "reports"], capture_output=True, text=True)
    assert failed.returncode == 2 and "did you mean report.json?" in failed.stderr
