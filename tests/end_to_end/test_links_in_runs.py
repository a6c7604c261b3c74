"""Links in a run's folder lead nothing out of it: what is written or deleted there is refused in one sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import recorded_trials

from steelyard.cluster import files as node_files
from steelyard.cluster.files import Piece
from steelyard.errors import UserError
from steelyard.measure import launch

if TYPE_CHECKING:
    from finished_runs import CommandLine, Finished, Steelyard

pytestmark = pytest.mark.end_to_end

FOLDERS = ("trials", "certificates", "profiles", "networks", "probes", "search", "graphs", "communication")
FILES = ("run.json", "rounds.jsonl", "certificates.json", "search.json", "report.html", "lock")
WRITING = [("run", "--resume", "latest", "--plain"), ("explain", "fake", "--fresh", "--plain")]
LINK = "is a link, and what steelyard writes or deletes in a run's folder must lie inside it"


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files and folders below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
        if path.name != "lock"
    }


def moved_outside(path: Path, outside: Path) -> Path:
    """Move what is at a path elsewhere, and put a link in its place; returns where it is."""
    outside.mkdir(exist_ok=True)
    target = outside / path.name
    if path.exists():
        shutil.move(path, target)
    elif path.suffix:
        target.write_text("kept")
    else:
        target.mkdir()
    path.symlink_to(target)
    return target


@pytest.fixture
def explained(copied: Finished) -> Finished:
    """A run with something in the place of a profile, of which a process and its profiles would be measured again."""
    profile = (
        copied.folder / "profiles" / f"1-{copied.result['comparisons'][0]['contenders'][0]['case'].replace('/', '_')}"
    )
    profile.mkdir(parents=True)
    (profile / "rules.json").write_text("{}")
    shutil.rmtree(max((copied.folder / "trials").iterdir()))
    return copied


@pytest.mark.parametrize("name", [*FOLDERS, *FILES])
def test_a_link_in_the_run_folder_leads_nothing_out_of_it(
    name: str, explained: Finished, cli: CommandLine, tmp_path: Path
) -> None:
    (explained.folder / "lock").unlink(missing_ok=True)
    target = moved_outside(explained.folder / name, tmp_path / "outside")
    before = contents(tmp_path / "outside"), target.stat().st_mtime_ns
    inside = contents(explained.folder)
    for words in WRITING:
        message = cli.error(*words)
        assert f"/{name} {LINK}" in message, words
    assert (contents(tmp_path / "outside"), target.stat().st_mtime_ns) == before
    assert contents(explained.folder) == inside


@pytest.mark.parametrize("kind", ["trials", "profiles"])
def test_a_link_in_the_place_of_a_process_leads_nothing_out_of_it(
    kind: str, explained: Finished, cli: CommandLine, tmp_path: Path
) -> None:
    moved_outside(max((explained.folder / kind).iterdir()), tmp_path / "outside")
    before = contents(tmp_path / "outside")
    for words in WRITING:
        assert LINK in cli.error(*words)
    assert contents(tmp_path / "outside") == before


def test_a_link_deep_among_certificates_is_refused_if_it_leads_out(
    explained: Finished, cli: CommandLine, tmp_path: Path
) -> None:
    deep = explained.folder / "certificates" / "group" / "case" / "fake"
    deep.mkdir(parents=True)
    (deep / "inside").symlink_to("../fake")
    (tmp_path / "outside" / "perturbation0").mkdir(parents=True)
    (deep / "more").symlink_to(tmp_path / "outside")
    assert f"fake/more {LINK}" in cli.error("run", "--resume", "latest", "--plain")
    (deep / "more").unlink()
    assert cli("run", "--resume", "latest", "--plain")[0] == 0
    assert (tmp_path / "outside" / "perturbation0").is_dir()


@pytest.mark.parametrize(
    "name", ["events.jsonl", "output.log", "job.json", "samples.i64", "rank1", "rank1/events.jsonl"]
)
@pytest.mark.parametrize("exists", [True, False])
def test_a_process_writes_through_no_link_in_its_folder(name: str, exists: bool, tmp_path: Path) -> None:
    folder = tmp_path / "run" / "trials" / "r01.0-fake"
    (folder / name).parent.mkdir(parents=True)
    target = tmp_path / "target"
    if exists:
        target.write_text("kept")
    (folder / name).symlink_to(target)
    job = recorded_trials.job(folder)
    if name == "events.jsonl" and exists:  # the folder of a process that was interrupted is put aside
        launch.refused(job, "unsupported", "It cannot.")
        assert not (folder / name).is_symlink()
    else:
        with pytest.raises(UserError, match=f"{name} {LINK}"):
            launch.refused(job, "unsupported", "It cannot.")
    assert target.read_text() == "kept" if exists else not target.exists()


@pytest.mark.parametrize("path", ["trials/r01.0-fake/events.jsonl", "trials/r02.0-fake/events.jsonl", "profiles/1-x/a"])
def test_a_node_writes_through_no_link_in_the_record_at_home(path: str, tmp_path: Path) -> None:
    run, outside = tmp_path / "run", tmp_path / "outside"
    (run / "trials" / "r01.0-fake").mkdir(parents=True)
    outside.mkdir()
    (outside / "file").write_text("kept")
    (run / "trials" / "r01.0-fake" / "events.jsonl").symlink_to(outside / "file")
    for name in ("trials/r02.0-fake", "profiles"):
        (run / name).symlink_to(outside)
    with pytest.raises(UserError, match=LINK):
        node_files.write(run, Piece(path, 0, b"written"))
    assert contents(outside) == {"file": b"kept"}


def test_a_page_is_not_written_in_the_place_of_a_link(copied: Finished, cli: CommandLine, tmp_path: Path) -> None:
    target = moved_outside(copied.folder / "report.html", tmp_path / "outside")
    before = target.read_bytes()
    assert f"report.html {LINK}" in cli.error("report", "latest")
    assert cli("report", "latest", "--output", str(tmp_path / "page.html"))[0] == 0
    assert target.read_bytes() == before


def test_a_link_in_the_place_of_the_lock_or_the_index_is_no_traceback(
    copied: Finished, cli: CommandLine, tmp_path: Path
) -> None:
    target = tmp_path / "created"
    (copied.folder / "lock").unlink(missing_ok=True)
    (copied.folder / "lock").symlink_to(target)
    path = copied.folder / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"state": "running"}))
    for name in ("index.sqlite", "index.sqlite-wal", "index.sqlite-shm"):
        (copied.folder.parent / name).unlink(missing_ok=True)
    (copied.folder.parent / "index.sqlite").symlink_to(target)
    for words in (
        ("list", "runs"),
        ("runs", "list"),
        ("history",),
        ("report",),
        ("merge", str(copied.folder), "--runs", "m"),
    ):
        code, _, err = cli(*[str(tmp_path / "merged") if word == "m" else word for word in words])
        assert code == 0, err
    code, out, err = cli("runs", "remove", copied.folder.name)
    assert code == 0, err
    assert "Removed" in out
    assert not target.exists()


def test_folders_that_the_user_reaches_through_links_go_on(
    copied: Finished, steelyard: Steelyard, data_folder: Path, tmp_path: Path
) -> None:
    shutil.rmtree(max((copied.folder / "trials").iterdir()))
    elsewhere = shutil.move(copied.folder, tmp_path / "disk" / copied.folder.name)
    copied.folder.symlink_to(elsewhere)
    shutil.move(data_folder / "runs", tmp_path / "disk" / "runs")
    (data_folder / "runs").symlink_to(tmp_path / "disk" / "runs")
    done = steelyard("run", "--resume", "latest", "--plain")
    assert done.returncode == 0, done.stderr
    done = steelyard("explain", "fake", "--plain")
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "disk" / copied.folder.name / "profiles").iterdir())
