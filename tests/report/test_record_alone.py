"""A report is a function of the run folder alone: it stays byte-identical whatever happens to workloads and frameworks."""

from __future__ import annotations

import json
import shutil

import pytest
from recorded import WORKLOADS, Script, options, write_run

from steelyard import analysis
from steelyard.catalog import frameworks, workloads
from steelyard.errors import UserError
from steelyard.files import settings_files
from steelyard.plan import resolve
from steelyard.report import as_json, page


@pytest.fixture
def folders(tmp_path):
    """A copy of the smallest workload, and a finished run of it."""
    own = tmp_path / "workloads"
    shutil.copytree(WORKLOADS / "line", own / "line")
    run = write_run(
        tmp_path / "runs",
        {"fake": Script(10.0), "dummy": Script(12.0)},
        options(workload_folders=(str(own),)),
    )
    return own, run


def shown(run):
    """Return the page and the JSON of a run."""
    view = analysis.view(run)
    return page.render(view), json.dumps(as_json.as_dict(view))


def test_the_page_stays_when_the_workload_changes_or_goes(folders):
    own, run = folders
    before = shown(run)
    spec = own / "line" / "spec.toml"
    changed = spec.read_text().replace("batch = 16", "batch = 32").replace('title = "', 'title = "Another ')
    assert changed != spec.read_text()
    spec.write_text(changed)
    (own / "line" / "network.py").write_text("raise RuntimeError('a network of another time')\n")
    assert shown(run) == before
    shutil.rmtree(own)
    assert shown(run) == before


def test_the_page_stays_when_the_index_is_gone(folders):
    _, run = folders
    before = shown(run)
    (run.parent / "index.sqlite").unlink()
    assert shown(run) == before


def test_a_report_reads_no_workload_framework_study_or_protocol(folders, monkeypatch):
    _, run = folders
    before = shown(run)

    def refuse(*_):
        raise AssertionError("a report reads the run folder alone")

    monkeypatch.setattr(settings_files, "read", refuse)
    for module, name in (
        (workloads, "find"),
        (frameworks, "framework"),
        (frameworks, "all_frameworks"),
        (resolve, "plan"),
    ):
        monkeypatch.setattr(module, name, refuse)
    assert shown(run) == before


def test_a_report_would_notice_another_batch_in_the_record(folders):
    """The record decides: the same change made there shows."""
    _, run = folders
    before = shown(run)
    path = run / "run.json"
    path.write_text(path.read_text().replace('"batch": 16', '"batch": 32'))
    (run.parent / "index.sqlite").unlink()
    assert shown(run) != before


def test_a_run_of_the_older_format_is_refused(folders):
    _, run = folders
    raw = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**raw, "format": 1}))
    with pytest.raises(UserError, match="has the older format 1"):
        shown(run)
