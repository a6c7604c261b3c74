"""The JSON of every recorded run is what docs/reference/result.schema.json says."""

from __future__ import annotations

import json
from pathlib import Path

import golden_archives
import golden_commands
import jsonschema
import pytest

from steelyard.exports import result_json

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "reference" / "result.schema.json").read_text())
CHECK = jsonschema.Draft202012Validator(SCHEMA)


def test_the_schema_is_one_and_names_its_version():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$id"] == "steelyard-result-1"


@pytest.mark.parametrize("kind", golden_archives.kinds())
def test_the_json_of_every_kind_fits(kind, readable):
    for run in readable(kind):
        for quantity in ("step time", *golden_commands.KINDS[kind].quantities):
            found = json.loads(result_json.text(run.view(quantity)))
            wrong = [f"{error.json_path}: {error.message[:200]}" for error in CHECK.iter_errors(found)]
            assert wrong == []


@pytest.mark.parametrize("kind", ["limits", "epochs", "alone"])
@pytest.mark.parametrize("price", ["$1.2/h", "0.30/kWh"])
def test_the_json_with_a_price_fits(kind, price, readable):
    for run in readable(kind):
        for quantity in ("step time", "cost"):
            found = json.loads(result_json.text(run.view(quantity, price)))
            wrong = [f"{error.json_path}: {error.message[:200]}" for error in CHECK.iter_errors(found)]
            assert wrong == []
            assert found["price"]["text"].startswith(price.partition("/")[0])


def test_a_field_without_a_description_is_found():
    found = dict.fromkeys(SCHEMA["required"], "x") | {"new": 1, "method": "1"}
    messages = [error.message for error in CHECK.iter_errors(found)]
    assert any("'new' was unexpected" in message for message in messages)
    assert any("is not of type 'integer'" in message for message in messages)


def test_every_field_is_described():
    def undescribed(part: dict, path: str) -> list[str]:
        here = [] if "description" in part or "$ref" in part else [path]
        return here + [
            name for key, value in part.get("properties", {}).items() for name in undescribed(value, f"{path}.{key}")
        ]

    assert undescribed(SCHEMA, "$") == []
    assert [found for name, part in SCHEMA["$defs"].items() for found in undescribed(part, name)] == []
