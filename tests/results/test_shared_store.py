"""A shared store on a real PostgreSQL server: exact, safe with several writers, and no loss when the server goes away."""

from __future__ import annotations

import multiprocessing
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
import recorded_trials
from postgres_server import Server, running
from test_merging import NAME, OTHER, run_in, tree

from steelyard.cli.main import main
from steelyard.errors import UserError
from steelyard.results import addresses, identity, merging, points, run_folders, shared, trials
from steelyard.results.shared import Shared

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server for this file."""
    yield from running()


@pytest.fixture
def url(server: Server, request: pytest.FixtureRequest) -> str:
    """The address of an empty database."""
    name = f"of_{abs(hash(request.node.name))}"
    with psycopg.connect(server.url(), autocommit=True) as database:
        database.execute(f"CREATE DATABASE {name}")
    return server.url(name)


def pushed(url: str, runs: Path) -> shared.Pushed:
    """Store the runs of a folder."""
    with Shared(url) as store:
        return store.push(runs)


def fetched(url: str, into: Path) -> dict[str, bytes]:
    """Merge the runs of a store into a folder; returns its files."""
    assert main(["merge", url, "--runs", str(into)]) == 0
    return tree(into)


def count(url: str, table: str) -> int:
    """Return the number of rows of a table."""
    with psycopg.connect(url) as database:
        row = database.execute(f"SELECT count(*) FROM steelyard.{table}").fetchone()
    assert row
    return int(row[0])


def test_a_run_comes_back_byte_by_byte(url: str, tmp_path: Path) -> None:
    run_in(tmp_path / "a", "aaaaaaaa1", trials=2)
    run_in(tmp_path / "a", "dddddddd1", OTHER)
    assert pushed(url, tmp_path / "a").stored == [NAME, OTHER]
    merging.merge([tmp_path / "a"], tmp_path / "directly")
    expected = tree(tmp_path / "directly")
    assert fetched(url, tmp_path / "back") == expected
    assert fetched(url, tmp_path / "back") == expected, "a second time nothing changes"
    assert count(url, "trials") == 3


def test_the_same_run_is_stored_once_and_a_later_state_replaces_an_earlier_one(url: str, tmp_path: Path) -> None:
    run_in(tmp_path / "early", "aaaaaaaa1", trials=1)
    run_in(tmp_path / "late", "aaaaaaaa1", trials=2)
    assert pushed(url, tmp_path / "early").stored == [NAME]
    assert pushed(url, tmp_path / "early").stored == []
    assert pushed(url, tmp_path / "late").stored == [NAME]
    assert pushed(url, tmp_path / "early").stored == []
    assert (count(url, "runs"), count(url, "trials")) == (1, 2)


def test_two_machines_may_use_one_name(url: str, tmp_path: Path) -> None:
    for key in ("aaaaaaaa1", "bbbbbbbb1"):
        run_in(tmp_path / key, key)
        pushed(url, tmp_path / key)
    fetched(url, tmp_path / "back")
    assert run_folders.names(tmp_path / "back") == [NAME, f"{NAME}-bbbbbbbb"]


def _write(url: str, runs: Path) -> None:
    pushed(url, runs)


def test_three_writers_at_once_store_every_run_once(url: str, tmp_path: Path) -> None:
    """Each has runs of its own, and all have one in common; the first of them makes the tables."""
    for writer in "abc":
        run_in(tmp_path / writer, "cccccccc1", "20260103-000000-common", trials=2)
        for number in range(3):
            run_in(tmp_path / writer, f"{writer}{number}{'0' * 8}", f"20260101-00000{number}-{writer}")
    method = multiprocessing.get_context("spawn")
    writers = [method.Process(target=_write, args=(url, tmp_path / name)) for name in "abc"]
    for each in writers:
        each.start()
    for each in writers:
        each.join(100)
    assert [each.exitcode for each in writers] == [0, 0, 0]
    assert (count(url, "runs"), count(url, "trials")) == (10, 11)
    assert len(fetched(url, tmp_path / "back")) == 10 + 11 * 4


def test_a_server_that_goes_away_loses_nothing_and_is_caught_up_later(server: Server, url: str, tmp_path: Path) -> None:
    for number in range(3):
        run_in(tmp_path / "a", f"{number}aaaaaaaa", f"20260101-00000{number}-line")
    before = tree(tmp_path / "a")
    store = Shared(url)
    server.stop()
    try:
        with pytest.raises(UserError, match=r"cannot be used \(.*\)\. The run folders hold everything") as raised:
            store.push(tmp_path / "a")
        assert "secret" not in str(raised.value)
        with pytest.raises(UserError, match="cannot be used"):
            Shared(url)
    finally:
        server.start()
    assert tree(tmp_path / "a") == before
    assert len(pushed(url, tmp_path / "a").stored) == 3


def test_a_server_that_goes_away_in_the_middle_of_a_run_keeps_the_whole_runs_only(
    server: Server, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        run_in(tmp_path / "a", f"{number}aaaaaaaa", f"20260101-00000{number}-line")
    store, change = Shared(url), Shared._change

    def stopping(self: Shared, *statements: shared.Statement) -> None:
        if "INSERT INTO files" in statements[0][0] and count(url, "runs") == 1:
            server.stop()
        change(self, *statements)

    monkeypatch.setattr(Shared, "_change", stopping)
    try:
        with pytest.raises(UserError, match="cannot be used"):
            store.push(tmp_path / "a")
    finally:
        server.start()
    monkeypatch.undo()
    assert (count(url, "runs"), count(url, "read_runs")) == (1, 1)
    assert len(pushed(url, tmp_path / "a").stored) == 1


def test_a_run_with_characters_that_the_server_cannot_hold_is_stored(url: str, tmp_path: Path) -> None:
    folder = run_in(tmp_path / "a", "aaaaaaaa1")
    failed = folder / "trials" / "r02.0-fake"
    events = recorded_trials.events(ending="error")
    events[-1]["message"] = "It broke: \0."
    recorded_trials.write(failed, recorded_trials.job(failed, 2), events)
    assert trials.read(failed).error
    assert pushed(url, tmp_path / "a") == shared.Pushed([NAME], [])
    assert fetched(url, tmp_path / "back")


def test_damaged_runs_and_runs_in_progress_are_not_stored(url: str, tmp_path: Path) -> None:
    folder = run_in(tmp_path / "a", "aaaaaaaa1", state="running")
    damaged = run_in(tmp_path / "a", "dddddddd1", OTHER)
    (damaged / "run.json").write_text("{")
    with run_folders.claim(folder):
        done = pushed(url, tmp_path / "a")
    assert done.stored == []
    assert "run.json is damaged" in done.left_out[0]


def test_a_history_is_read_from_the_store_alone(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    point = points.Point("", "line", "g", "fake", "Fake", "cached", "fake", "fake", "1", (1e6, 2e6))
    monkeypatch.setattr(points, "points", lambda folder, known, found: [replace(point, run=folder.name)])
    for key in ("aaaaaaaa1", "bbbbbbbb1"):
        run_in(tmp_path / key, key, machine="m1")
        pushed(url, tmp_path / key)
    with Shared(url) as store:
        known, found = store.history()
    assert [(run.run, run.name, run.machine) for run in known] == [("aaaaaaaa1", NAME, "m1"), ("bbbbbbbb1", NAME, "m1")]
    assert found == [replace(point, run="aaaaaaaa1"), replace(point, run="bbbbbbbb1")]


@pytest.mark.parametrize(("column", "value", "named"), recorded_trials.ALTERED_ROWS)
def test_an_altered_row_is_left_out_of_a_history_and_its_run_is_named(
    column: str, value: str, named: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = points.Point("", "line", "g", "fake", "Fake", "cached", "fake", "fake", "1", (1e6, 2e6))
    made = [point, replace(point, variant="dummy")]
    monkeypatch.setattr(
        points, "points", lambda folder, known, found: [replace(each, run=folder.name) for each in made]
    )
    for key, name in (("aaaaaaaa1", NAME), ("bbbbbbbb1", OTHER)):
        run_in(tmp_path / key, key, name, machine="m1")
        pushed(url, tmp_path / key)
    table, name = column.split(".")
    rows = "id = 'bbbbbbbb1'" if table == "runs" else "run = 'bbbbbbbb1' AND variant = 'fake'"
    with psycopg.connect(url) as database:
        assert database.execute(f"UPDATE steelyard.{table} SET {name} = %s WHERE {rows}", [value]).rowcount == 1
    said: list[str] = []
    with Shared(url) as store:
        known, found = store.history(said.append)
    (sentence,) = said
    assert sentence.startswith(f"The store {addresses.shown(url)} holds a damaged row of the run {OTHER} ({column}")
    assert named in sentence
    left = {("aaaaaaaa1", "dummy"), ("aaaaaaaa1", "fake")} | ({("bbbbbbbb1", "dummy")} if table == "points" else set())
    assert {(each.run, each.variant) for each in found} == left
    assert {each.run for each in known} == {run for run, _ in left}


def test_a_schema_of_another_program_is_left_alone(url: str) -> None:
    with psycopg.connect(url) as database:
        database.execute("CREATE SCHEMA steelyard")
    with pytest.raises(
        UserError, match=r"holds a schema steelyard that something else has made, and steelyard [0-9.]+"
    ) as said:
        Shared(url)
    assert "None" not in str(said.value)


def test_a_store_of_another_version_is_left_alone(url: str) -> None:
    Shared(url).close()
    with psycopg.connect(url) as database:
        database.execute("COMMENT ON SCHEMA steelyard IS 'steelyard store, version 99'")
    with pytest.raises(
        UserError, match=r"holds 'steelyard store, version 99', and steelyard [0-9.]+ on this machine writes"
    ):
        Shared(url)


OUTSIDE = ["../evil", "/etc/evil", "trials/../../evil", "lock", ".hidden", "report.html", ""]
IMPOSSIBLE = ["trials", "trials/r01.0-fake", f"trials/{'x' * 300}", "/".join(["x" * 200] * 30), "run.json/x"]
NAMES = ["../evil", "..", ".", "", "/tmp/evil", "a/b", ".hidden", "x" * 300, "x" * 240]


def merged_beside_a_damaged_run(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], statement: str, *values: str
) -> str:
    """Store two runs, alter what the store holds of the first one, and merge; returns what is said of it."""
    run_in(tmp_path / "a", "aaaaaaaa1")
    run_in(tmp_path / "a", "dddddddd1", OTHER)
    pushed(url, tmp_path / "a")
    with psycopg.connect(url) as database:
        assert database.execute(statement, values).rowcount >= 1
    capsys.readouterr()
    assert main(["merge", url, "--runs", str(tmp_path / "into")]) == 1
    out, err = capsys.readouterr()
    assert [path.name for path in (tmp_path / "into").iterdir()] == [OTHER], "the other run is there, and nothing else"
    assert tree(tmp_path / "into" / OTHER) == {
        name: content for name, content in tree(tmp_path / "a" / OTHER).items() if name != "report.html"
    }
    assert "1 run added" in out
    assert not list(tmp_path.rglob("*evil*"))
    (line,) = err.splitlines()
    assert line.startswith("steelyard: ")
    return line


@pytest.mark.parametrize("path", [*OUTSIDE, *IMPOSSIBLE], ids=lambda each: each[:20])
def test_a_run_with_an_impossible_file_is_left_out_and_the_others_are_merged(
    path: str, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = "path = 'trials/r01.0-fake/job.json'" if path in IMPOSSIBLE else "path = 'run.json'"
    line = merged_beside_a_damaged_run(
        url, tmp_path, capsys, f"UPDATE steelyard.files SET path = %s WHERE run = 'aaaaaaaa1' AND {where}", path
    )
    assert f"The run '{NAME}' of the store postgresql:///" in line
    assert "was left out: " in line


@pytest.mark.parametrize("name", NAMES, ids=lambda each: each[:20])
def test_a_run_with_an_impossible_name_is_left_out_and_the_others_are_merged(
    name: str, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = merged_beside_a_damaged_run(
        url, tmp_path, capsys, "UPDATE steelyard.runs SET name = %s WHERE id = 'aaaaaaaa1'", name
    )
    assert "was left out: " in line


def test_a_run_without_its_record_is_left_out(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = merged_beside_a_damaged_run(
        url, tmp_path, capsys, "DELETE FROM steelyard.files WHERE run = 'aaaaaaaa1' AND path = 'run.json'"
    )
    assert "it has no run.json" in line


def test_a_run_with_a_damaged_record_is_left_out(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = merged_beside_a_damaged_run(
        url, tmp_path, capsys, "UPDATE steelyard.files SET content = 'x' WHERE run = 'aaaaaaaa1' AND path = 'run.json'"
    )
    assert "run.json is damaged" in line


@pytest.mark.parametrize("stamp", ["", "x", "1 2", "1 2 3 4", "-1 2 3", f"{'9' * 5000} 1 {'0' * 64}", "ä b c"])
def test_a_state_that_is_none_is_replaced_by_the_run_in_its_folder(stamp: str, url: str, tmp_path: Path) -> None:
    run_in(tmp_path / "a", "aaaaaaaa1")
    run_in(tmp_path / "a", "dddddddd1", OTHER)
    pushed(url, tmp_path / "a")
    with psycopg.connect(url) as database:
        database.execute("UPDATE steelyard.read_runs SET stamp = %s WHERE run = 'aaaaaaaa1'", [stamp])
    assert pushed(url, tmp_path / "a") == shared.Pushed([NAME], [])
    assert pushed(url, tmp_path / "a") == shared.Pushed([], [])
    with psycopg.connect(url) as database:
        database.execute("UPDATE steelyard.read_runs SET stamp = %s WHERE run = 'aaaaaaaa1'", [stamp])
    assert run_folders.names(tmp_path / "a") == [NAME, OTHER]
    fetched(url, tmp_path / "back")
    assert run_folders.names(tmp_path / "back") == [NAME, OTHER]


def test_a_run_that_the_store_cannot_hold_is_left_out_and_the_others_are_stored(url: str, tmp_path: Path) -> None:
    folder = run_in(tmp_path / "a", "aaaaaaaa1")
    run_in(tmp_path / "a", "dddddddd1", OTHER)
    Path(os.fsdecode(os.fsencode(folder) + b"/trials/\xff")).write_text("")
    done = pushed(url, tmp_path / "a")
    assert done.stored == [OTHER]
    assert f"Run {NAME} was not stored: it has something that the store cannot hold" in done.left_out[0]


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("sqlite:///x", "--store must be an address such as postgresql://HOST/DATABASE. What was given is not shown"),
        ("postgresql://u:secret@h/d?nonsense=1", "--store is not an address that PostgreSQL can read"),
    ],
)
def test_an_address_that_is_none_is_one_sentence_without_the_password(address: str, sentence: str) -> None:
    with pytest.raises(UserError) as raised:
        addresses.check(address)
    assert sentence in str(raised.value)
    assert "secret" not in str(raised.value)


def test_states_are_ordered_as_runs_are(tmp_path: Path) -> None:
    held = [identity.held(run_in(tmp_path / str(n), "aaaaaaaa1", trials=n)) for n in (1, 2, 10)]
    for one in held:
        for other in held:
            later = shared._order(shared._state(one)) > shared._order(shared._state(other))
            assert later == one.is_later_than(other)
