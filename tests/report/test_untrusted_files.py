"""Any file of a run may be damaged or altered: every command then works, or ends with one sentence."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import tempfile
from array import array
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import Script, options, write_run
from recorded_profiles import write_profile

import steelyard.stages
from steelyard import host
from steelyard.cli.main import main
from steelyard.measure import launch
from steelyard.report import page
from steelyard.results import permission, record

if TYPE_CHECKING:
    from collections.abc import Sequence

SOURCE = "the folder of runs"
COMMANDS = (
    ("report", "latest", "--json"),
    ("report", "latest", "--quantity", "peak memory", "--json"),
    ("compare", "fake", "dummy", "--json"),
    ("compare", "20260102", "20260101", "--anyway", "--json"),
    ("list", "runs", "--json"),
    ("run", "--resume", "latest", "--dry-run", "--json"),
    ("advise", "--json"),
    ("advise", "--for", "speed", "--for", "memory"),
    ("explain", "--plain"),
    ("history",),
    ("history", "--json"),
    ("merge", SOURCE, "--json"),
)
GALLERY = ("gallery", "the newest run", "--json")
# Commands that may end with another code: 1 where a run, or what is left of it, does not answer, 3 where a contender was left out.
OTHER_CODES = {"advise": (1,), "explain": (1, 3), "gallery": (1,), "merge": (1,)}
REMOVED = object()
# What a value of JSON is replaced by: other types, numbers out of range, texts that cannot be printed, nothing.
VALUES = (
    None,
    True,
    0,
    -1,
    -(10**12),
    10**12,
    10**30,
    10**400,
    0.5,
    -0.5,
    float("nan"),
    float("inf"),
    "",
    "garbage",
    "\ud800",
    [],
    {},
    [1],
    ["x"],
    {"x": 1},
    [[[]]],
    REMOVED,
)
# What a whole file, or the rest of it from some place on, is replaced by.
CONTENTS = (b"", b"\n", b"\x00" * 64, b"\xff\xfe\xfd" * 30, b"null", b"[]", b"{}\n", b"[" * 100_000, b"garbage\n" * 9)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs, each with a failed trial and a profile, that could be continued on this machine."""
    root = tmp_path_factory.mktemp("runs")
    scripts = {"fake": Script(rounds=2), "dummy": Script(12.0, rounds=2, failure=("crash", "It fell over."))}
    run = write_run(root, scripts, options(frameworks=tuple(scripts)))
    machine = host.describe().fingerprint()
    allowed = permission.mark(record.read(run).plan, machine)
    record.update(run, worker_hash=launch.worker_hash(), machine=machine, allowed=allowed)
    write_profile(run, "fake", 6.0, 3.0)
    shutil.copytree(run, root / "20260101-030405-test")
    return root


@pytest.fixture(scope="module", autouse=True)
def _small_pages(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Leave the plotting library out of the pages: packing it takes most of the time of a report. Nothing is profiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "library", lambda: "")
        patch.setattr(steelyard.stages, "explain", lambda *_, **__: None)
        patch.setenv("STEELYARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def run_command(root: Path, command: tuple[str, ...]) -> tuple[str, str]:
    """Run a command on a folder of runs; returns its two outputs. It must succeed, or end with one sentence.

    Runs are merged into a folder beside it, and so is the website of the newest one.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        runs = root.with_name("merged") if SOURCE in command else root
        places = {SOURCE: str(root), GALLERY[1]: str(root / "20260102-030405-test")}
        options = ["-o", str(root.with_name("site"))] if command == GALLERY else ["--runs", str(runs)]
        code = main([*(places.get(part, part) for part in command), *options])
    texts = []
    for file in (out, err):
        file.flush()
        texts.append(file.buffer.getvalue().decode())
    assert code in (0, 2, *OTHER_CODES.get(command[0], ())), command
    if code != 1:
        # Tables are printed before a page, which may not be written.
        assert bool(texts[0]) == (code != 2) or (texts[0] and "--json" not in command), command
    if code == 2:
        (line,) = texts[1].splitlines()
        assert line.startswith("steelyard: ")
    return texts[0], texts[1]


def files_of(root: Path) -> list[str]:
    """Return the names of the files of the newest run; of its trials, those of the first one and of the failed one."""
    run = max(root.glob("*/run.json")).parent
    names = [str(path.relative_to(run)) for path in sorted(run.rglob("*")) if path.is_file()]
    return [
        name
        for name in names
        if not name.startswith("trials/") or "r01.0-line_small_fake" in name or "r03" in name.split("/")[1]
    ]


def places(value: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value inside a JSON value, itself included."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [prefix, *(place for key, each in inside for place in places(each, (*prefix, key)))]


def replaced(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    """Return a JSON value with another one at a place, or without the one there."""
    if not place:
        return None if new is REMOVED else new
    key, rest = place[0], place[1:]
    if not rest and new is REMOVED:
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        kept = {name: each for name, each in inside if name != key}
        return kept if isinstance(value, dict) else list(kept.values())
    changed = value.copy()
    changed[key] = replaced(value[key], rest, new)
    return changed


def _alter_json(path: Path, draw: Any) -> None:
    """Replace one value in a JSON file, or in one line of a file of JSON lines."""
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    number = draw(st.integers(0, len(lines) - 1))
    value = json.loads(lines[number])
    changed = replaced(value, draw(st.sampled_from(places(value))), draw(st.sampled_from(VALUES)))
    lines[number] = json.dumps(changed)
    path.write_text("".join(f"{line}\n" for line in lines))


def _alter_binary(path: Path, draw: Any) -> None:
    """Replace some numbers of a file of numbers by extreme ones."""
    kind = "q" if path.suffix == ".i64" else "f"
    values = array(kind, path.read_bytes())
    place = draw(st.integers(0, len(values) - 1))
    extremes = (0, -1, -(2**63), 2**63 - 1) if kind == "q" else (float("nan"), float("-inf"), 1e38, 0.0)
    values[place] = draw(st.sampled_from(extremes))
    path.write_bytes(values.tobytes())


def _alter_bytes(path: Path, draw: Any) -> None:
    """Replace the end of a file."""
    content = path.read_bytes()
    path.write_bytes(content[: draw(st.integers(0, len(content)))] + draw(st.sampled_from(CONTENTS)))


def _remove(path: Path, draw: Any) -> None:
    path.unlink()
    if draw(st.booleans()):
        path.mkdir()


def alterations(path: Path) -> list[Any]:
    """Return how a file can be altered."""
    found = [_alter_bytes, _remove]
    if path.suffix in (".json", ".jsonl"):
        found += [_alter_json] * 3
    if path.suffix in (".i64", ".f32"):
        found += [_alter_binary]
    return found


def test_every_command_succeeds_on_a_run_without_damage(original: Path) -> None:
    for command in COMMANDS:
        out, err = run_command(original, command)
        assert out
        assert err == ""


@settings(max_examples=40)
@given(data=st.data())
def test_no_damaged_file_causes_anything_but_a_sentence(data: st.DataObject, original: Path) -> None:
    _damage(data, original, files_of(original), COMMANDS)


def test_a_gallery_has_a_run_without_damage(original: Path) -> None:
    assert json.loads(run_command(original, GALLERY)[0])["left_out"] == []


@settings(max_examples=25)
@given(data=st.data())
def test_no_damaged_file_causes_anything_but_a_sentence_of_a_gallery(data: st.DataObject, original: Path) -> None:
    _damage(data, original, files_of(original), [GALLERY])


@settings(max_examples=15)
@given(data=st.data())
def test_no_damaged_profile_causes_anything_but_a_sentence(data: st.DataObject, original: Path) -> None:
    names = [each for each in files_of(original) if each.startswith("profiles/")]
    _damage(data, original, names, [COMMANDS[0], COMMANDS[3]])


def _damage(data: st.DataObject, original: Path, names: list[str], commands: Sequence[tuple[str, ...]]) -> None:
    """Alter one of these files in a copy of the runs, and run the commands."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "runs"
        shutil.copytree(original, root)
        path = max(root.glob("*/run.json")).parent / data.draw(st.sampled_from(names))
        data.draw(st.sampled_from(alterations(path)))(path, data.draw)
        for command in commands:
            run_command(root, command)
