"""Every reference page documents exactly what the code writes and reads."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

import pytest
import reference_pages as pages
import tomllib

from steelyard.catalog import frameworks
from steelyard.catalog.strategies import Without
from steelyard.certificates.record import Certificate
from steelyard.environments.lock import LOCKS, parse_lock
from steelyard.host.noise import HostNoise
from steelyard.plan import cells, studies
from steelyard.plan.run_plan import Group, RunPlan, Search
from steelyard.published import documents, gathering, study_tables
from steelyard.results import record, store, trials
from steelyard.results.events import Watched, Withheld
from steelyard.results.record import RunRecord
from steelyard.results.searched import Searched, Tried
from steelyard_worker import protocol, tensors
from steelyard_worker.case import Case, Optimizer
from steelyard_worker.protocol import EventWriter
from steelyard_worker.strategy import Spread
from steelyard_worker.strategy_kinds import ALONE, KINDS

if TYPE_CHECKING:
    from pathlib import Path

SRC = pages.ROOT / "src" / "steelyard"
OTHER_SECTIONS = {"", "Events", "All events", "samples.i64 and losses.f32", "predictions"}


def names_of(kind: Any) -> set[str]:
    return {field.name for field in fields(kind)}


# events.md


def documented_events() -> dict[str, set[str]]:
    found = {name: rows for name, rows in pages.sections("events.md").items() if name not in OTHER_SECTIONS}
    return {name: {row[0] for row in rows} - set(protocol.ERROR_KINDS) for name, rows in found.items()}


def test_every_event_is_documented_with_its_fields() -> None:
    of_launcher = {protocol.WATCHED: names_of(Watched), protocol.WITHHELD: names_of(Withheld)}
    written = pages.events_written(pages.WORKER)
    written["warning"].add("programs")  # by the launcher, of processes that were left behind
    assert documented_events() == written | of_launcher


def test_an_event_that_code_writes_is_found(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text('events.write("planted", a=1)\nself._events.write("planted", b=2)\n')
    assert pages.events_written(tmp_path) == {"planted": {"a", "b"}}


def test_the_fields_of_all_events_are_documented(tmp_path: Path) -> None:
    writer = EventWriter(tmp_path / protocol.EVENTS, lambda: 1)
    writer.write("done")
    writer.close()
    written = json.loads((tmp_path / protocol.EVENTS).read_text(encoding="utf-8"))
    assert pages.keys("events.md", "All events") == list(written)


def test_every_kind_of_error_is_documented() -> None:
    documented = set(pages.keys("events.md", "error")) - pages.events_written(pages.WORKER)["error"]
    assert documented == set(protocol.ERROR_KINDS)


def test_every_warning_and_every_phase_of_a_block_is_documented() -> None:
    page = (pages.PAGES / "events.md").read_text(encoding="utf-8")
    warnings = {
        pages.text_of(keyword.value)
        for call in pages.calls(pages.WORKER, "write")
        for keyword in call.keywords
        if keyword.arg == "name" and call.args and pages.text_of(call.args[0]) == "warning"
    }
    calls = (call for name in ("keep", "_run", "first_step") for call in pages.calls(pages.WORKER, name))
    texts = {pages.text_of(node) for call in calls for argument in call.args for node in ast.walk(argument)}
    phases = texts - {"", "pipeline"}
    assert len(warnings) >= 2
    assert len(phases) >= 4
    for name in warnings | phases:
        assert f"`{name}`" in page, name


def test_the_binary_files_have_the_documented_types() -> None:
    rows = {row[0]: row[1] for row in pages.sections("events.md")["samples.i64 and losses.f32"]}
    assert set(rows) == {protocol.SAMPLES, protocol.LOSSES}
    reader = (SRC / "results" / "trials.py").read_text(encoding="utf-8")
    read = dict(re.findall(r"protocol\.(SAMPLES|LOSSES), \"(<[if]\d)\"", reader))
    assert read == {"SAMPLES": "<i8", "LOSSES": "<f4"}
    assert rows[protocol.SAMPLES] == "64-bit signed integer, little-endian"
    assert rows[protocol.LOSSES] == "32-bit float, little-endian"


def test_the_predictions_of_every_metric_are_documented() -> None:
    from steelyard.statistics.metrics import METRICS

    assert set(pages.keys("events.md", "predictions")) == set(METRICS)


# run-folder.md


def test_every_file_of_a_run_is_documented() -> None:
    files = {record.FILE, record.CERTIFICATES, record.PAGE, record.ROUNDS, f"{trials.FOLDER}/"}
    assert files <= set(pages.keys("run-folder.md", "Run folder"))
    page = (pages.PAGES / "run-folder.md").read_text(encoding="utf-8")
    assert f"`{store.FILE}`" in page


def test_every_file_of_a_trial_is_documented() -> None:
    binary = {protocol.SAMPLES, protocol.LOSSES}
    files = {trials.JOB, protocol.EVENTS, *binary, f"{protocol.PREDICTIONS}/", protocol.LOG}
    assert set(pages.keys("run-folder.md", "Trial folders")) == files


def test_every_field_of_a_certificate_is_documented() -> None:
    assert set(pages.keys("run-folder.md", record.CERTIFICATES)) == names_of(Certificate)


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("run.json", RunRecord),
        ("Plan", RunPlan),
        ("Plan of a search", Search),
        ("Search", Searched),
        ("tried", Tried),
        ("Published", gathering.Published),
        ("Group", Group),
        ("Case", Case),
    ],
)
def test_every_field_of_the_record_of_a_run_is_documented(heading: str, kind: Any) -> None:
    assert set(pages.keys("run-folder.md", heading)) == names_of(kind)


def test_every_field_of_a_round_is_documented() -> None:
    assert set(pages.keys("run-folder.md", record.ROUNDS)) == pages.keywords_of(SRC, "note_round")
    assert set(pages.keys("run-folder.md", "host_noise")) == names_of(HostNoise)


def test_the_tensor_format_is_documented() -> None:
    page = (pages.PAGES / "run-folder.md").read_text(encoding="utf-8")
    assert f"`{tensors.BYTES}`" in page
    assert f"`{tensors.INDEX}`" in page
    assert f"`format` ({tensors.FORMAT})" in page
    assert f"multiple of {tensors.ALIGNMENT} bytes" in page


# study-files.md


@pytest.mark.parametrize(
    ("section", "kind"), [("Study files", studies.Study), ("Cells", cells.Cells), ("Sizes", studies.Size)]
)
def test_every_key_of_a_study_is_documented(section: str, kind: type) -> None:
    rows = {row[0]: row[2] for row in pages.sections("study-files.md")[section]}
    required = {f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING}
    assert set(rows) == names_of(kind)
    assert {name for name, answer in rows.items() if answer == "yes"} == required


def test_every_key_of_a_published_table_of_a_study_is_documented() -> None:
    assert set(pages.keys("study-files.md", "published")) == names_of(study_tables.StudyTable)


def test_the_study_shown_as_an_example_is_the_one_that_is_used() -> None:
    page = (pages.PAGES / "study-files.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    shown = tomllib.loads(example)
    assert shown == tomllib.loads((studies.FOLDER / "first-look.toml").read_text(encoding="utf-8"))


# published-figures.md


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("document", documents.Document),
        ("setups", documents.Setup),
        ("conditions", documents.Stated),
        ("entries", documents.Entry),
        ("values", documents.Value),
        ("errors", documents.Flaw),
        ("left_out", documents.LeftOut),
        ("studies.toml", documents.StudyNotes),
    ],
)
def test_every_key_of_the_published_figures_is_documented(heading: str, kind: Any) -> None:
    keys = {each.metadata.get("key", each.name) for each in fields(kind)}
    lists = {"setups", "conditions", "entries", "errors", "left_out"} if kind is documents.Document else set()
    documented = {key for row in pages.keys("published-figures.md", heading) for key in row.split(", ")}
    assert documented == keys - lists


# framework-toml.md


def framework_files() -> list[dict[str, Any]]:
    paths = sorted((pages.WORKER / "frameworks").glob("*/framework.toml"))
    return [tomllib.loads(path.read_text(encoding="utf-8")) for path in paths]


def test_every_key_of_a_framework_is_documented() -> None:
    rows = {row[0]: row[2] for row in pages.sections("framework-toml.md")["framework.toml"]}
    read = (names_of(frameworks.Framework) - {"name", "module", "folder"}) | {"import"}
    assert set(rows) == read
    for written in framework_files():
        assert written.keys() <= rows.keys()
        assert {name for name, answer in rows.items() if answer == "yes"} <= written.keys()


@pytest.mark.parametrize(
    ("table", "heading"),
    [("knobs", "[knobs.NAME]"), ("optimizers", "[optimizers.NAME]"), ("exporters", "[exporters.MODE]")],
)
def test_every_key_of_a_frameworks_tables_is_documented(table: str, heading: str) -> None:
    written = {key for file in framework_files() for entry in file.get(table, {}).values() for key in entry}
    assert set(pages.keys("framework-toml.md", heading)) == written


@pytest.mark.parametrize(("heading", "kind"), [("[strategies.NAME]", Spread), ("[without.KIND]", Without)])
def test_every_key_of_a_strategy_is_documented(heading: str, kind: Any) -> None:
    assert set(pages.keys("framework-toml.md", heading)) == names_of(kind)


def test_every_kind_of_strategy_is_documented() -> None:
    page = (pages.PAGES / "framework-toml.md").read_text(encoding="utf-8")
    (row,) = (line for line in page.splitlines() if line.startswith("| `kind` |"))
    assert {name for name in re.findall(r"`(\w+)`", row) if name != "kind"} == KINDS.keys() - {ALONE}


def test_what_a_framework_declares_of_an_optimizer_belongs_to_the_rule() -> None:
    declared = {key.removeprefix("scheduled_") for key in pages.keys("framework-toml.md", "[optimizers.NAME]")}
    assert declared <= names_of(Optimizer)


# lock-headers.md


def lock_rows() -> dict[str, str]:
    return {row[0]: row[1] for row in pages.sections("lock-headers.md")["Lock headers"]}


def test_every_header_of_a_lock_is_documented() -> None:
    facts = [key for path in LOCKS.glob("*.txt") for key in parse_lock(path.stem, path.read_text("utf-8")).facts]
    assert {re.sub(r"^(compiler flags for) .*", r"\1 FILE", key) for key in facts} == set(lock_rows())


def test_every_header_that_code_reads_is_documented() -> None:
    read = pages.header_keys_read(SRC / "environments")
    assert "vendor index" in read
    assert read <= set(lock_rows())


def test_a_header_that_code_reads_is_found(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text('lock.facts["planted"]\nlock.facts.get("also planted", "")\n')
    assert pages.header_keys_read(tmp_path) == {"planted", "also planted"}


@pytest.mark.parametrize("key", sorted(lock_rows()))
def test_exactly_the_required_headers_are_mandatory(key: str) -> None:
    text = "".join(f"# {each} = value\n" for each in lock_rows() if each != key)
    if lock_rows()[key] == "yes":
        with pytest.raises(ValueError, match=f"'{key}'"):
            parse_lock("planted", text)
    else:
        assert key not in parse_lock("planted", text).facts


def test_the_page_on_adding_a_framework_lists_every_field_of_an_optimizer() -> None:
    page = (pages.ROOT / "docs" / "adding-a-framework.md").read_text(encoding="utf-8")
    table = page.partition("The fields of the `Optimizer`")[2].partition("\n\n|")[2].partition("\n\n")[0]
    first = [line.split("|")[1 if line.startswith("|") else 0] for line in table.splitlines()]
    assert {name for cell in first for name in re.findall(r"`(\w+)`", cell)} == names_of(Optimizer)
