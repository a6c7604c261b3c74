"""The record that comes home while it grows: in pieces, in order, complete, and only where it belongs."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cluster.simulated import WORKLOADS

from steelyard.cluster import files, growing, home
from steelyard.cluster.agent import Agent
from steelyard.cluster.files import Piece
from steelyard.cluster.growing import Growing
from steelyard.cluster.messages import Order, Outgoing
from steelyard.errors import UserError
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard_worker.protocol import Data, Job, to_line


def trial(run: Path, name: str = "r01.0-x") -> Path:
    folder = run / "trials" / name
    folder.mkdir(parents=True)
    return folder


def send(source: Growing, target: Path) -> bool:
    found, whole = source.pieces()
    for piece in found:
        home.write(target, piece)
    return whole


def test_growing_files_arrive_as_they_are_and_only_what_is_new_is_sent(tmp_path: Path) -> None:
    node, here = tmp_path / "node", tmp_path / "home"
    trial(node, "r00.0-earlier").joinpath("events.jsonl").write_text("old")
    source = Growing(node)
    source.begin()
    folder = trial(node)
    for text in ("one\n", "one\ntwo\n"):
        (folder / "events.jsonl").write_text(text)
        (folder / "empty").touch()
        assert send(source, here)
        assert (here / "trials/r01.0-x/events.jsonl").read_text() == text
    assert (here / "trials/r01.0-x/empty").read_bytes() == b""
    assert source.pieces() == ([], True)
    assert not (here / "trials/r00.0-earlier").exists()


def test_events_go_after_the_files_they_speak_of_even_if_a_reply_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing, "MOST_BYTES", 4)
    monkeypatch.setattr(files, "PIECE_BYTES", 3)
    node, here = tmp_path / "node", tmp_path / "home"
    source = Growing(node)
    source.begin()
    folder = trial(node)
    (folder / "events.jsonl").write_bytes(b"e" * 5)
    (folder / "samples.i64").write_bytes(b"s" * 10)
    at_home = here / "trials/r01.0-x"
    for _ in range(10):
        whole = send(source, here)
        if (at_home / "events.jsonl").exists():
            assert (at_home / "samples.i64").stat().st_size == 10
        if whole:
            break
    assert (at_home / "events.jsonl").read_bytes() == b"e" * 5


def test_a_reply_that_was_lost_is_given_again_and_messages_come_once() -> None:
    outgoing = Outgoing()
    outgoing.add("say", "one")
    nothing = lambda: ([], True)  # noqa: E731
    first = outgoing.reply(0, nothing, 0, 0)
    assert [each.values for each in first.messages] == [("one",)]
    outgoing.add("say", "two")
    assert outgoing.reply(0, nothing, 0, 0) is first
    assert [each.values for each in outgoing.reply(first.number, nothing, 0, 0).messages] == [("two",)]


def test_a_question_that_is_asked_again_while_the_first_is_answered_gets_the_same_reply() -> None:
    outgoing = Outgoing()
    calls: list[int] = []
    second = threading.Event()

    def growing() -> tuple[list[Piece], bool]:
        calls.append(1)
        if len(calls) > 1:
            second.set()
        second.wait(0.5)  # long enough for the other question to come here as well, if it could
        return [Piece("trials/x/a", 0, b"1")], True

    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(outgoing.reply, 0, growing, 0, 0) for _ in range(2)]
    first, again = (each.result() for each in asked)
    assert first is again
    assert len(calls) == 1


def test_an_order_that_comes_twice_is_begun_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))
    agent = Agent("a", "key", "run")
    order = Order(1, "call", (_count, str(tmp_path / "calls")))
    assert [each.kind for each in agent.changes(0, order).messages] == ["done"]
    agent.changes(0, order)
    agent.changes(1, Order(2, "call", (len, "x")))  # done after everything that was ordered before it
    assert (tmp_path / "calls").read_text() == "x"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no file that is always full")
def test_what_meets_a_full_disk_says_which_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))
    (failed,) = Agent("a", "key", "run").changes(0, Order(1, "call", (_count, "/dev/full"))).messages
    folder = tmp_path / "cluster" / "runs" / "key" / "run"
    sentence = f"The disk that holds {folder} is full. Free some space, then continue with --resume."
    assert (failed.kind, failed.values) == ("failed", (1, sentence))


def _count(path: str) -> None:
    with Path(path).open("a") as file:
        file.write("x")


def test_messages_wait_until_the_files_they_speak_of_are_sent() -> None:
    outgoing = Outgoing()
    outgoing.add("done", 1)
    replies = iter([([Piece("trials/x/a", 0, b"1")], False), ([Piece("trials/x/a", 1, b"2")], True)])
    first = outgoing.reply(0, lambda: next(replies), 0, 0)
    assert (len(first.pieces), first.messages) == (1, ())
    second = outgoing.reply(1, lambda: next(replies), 0, 0)
    assert [each.kind for each in second.messages] == ["done"]


def test_a_file_that_differs_at_home_is_fetched_again_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PIECE_BYTES", 4)
    node, here = tmp_path / "node", tmp_path / "home"
    (trial(node) / "events.jsonl").write_bytes(b"0123456789")
    (trial(here) / "events.jsonl").write_bytes(b"0123456789 and an incomplete line")
    held = files.listing(node, node / "trials")
    home.complete(here, held, lambda path, begin: next(files.pieces(node, path, begin)))
    assert (here / "trials/r01.0-x/events.jsonl").read_bytes() == b"0123456789"
    (here / "trials/r01.0-x/events.jsonl").write_bytes(b"9876543210")
    home.complete(here, held, lambda path, begin: next(files.pieces(node, path, begin)))
    assert (here / "trials/r01.0-x/events.jsonl").read_bytes() == b"0123456789"
    held = {path: (size, files.digest(Path(__file__))) for path, (size, _) in held.items()}
    with pytest.raises(UserError, match="arrived damaged"):
        home.complete(here, held, lambda path, begin: next(files.pieces(node, path, begin)))


@pytest.mark.parametrize("path", ["trials/../../x", "/etc/x", "run.json", "../x", ""])
def test_a_node_writes_only_into_the_parts_of_the_record_that_nodes_send(tmp_path: Path, path: str) -> None:
    with pytest.raises(UserError):
        home.write(tmp_path / "run", Piece(path, 0, b"x"))
    assert not list(tmp_path.rglob("x"))


def test_processes_of_another_node_are_not_overwritten(tmp_path: Path) -> None:
    held = {"trials/r01.0-x/events.jsonl": (1, "0")}
    assert home.of_node(tmp_path, "a", held) == held, "nothing is at home yet"
    plan = resolve.plan(Options(workloads=("line",), frameworks=("fake",), workload_folders=(str(WORKLOADS),)))
    job = Job("measure", plan.variants[0].case, "", "", Data(""), "", node="b")
    (trial(tmp_path) / "job.json").write_text(to_line(job))
    assert home.of_node(tmp_path, "a", held) == {}
    assert home.of_node(tmp_path, "b", held) == held
