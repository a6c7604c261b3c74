"""Tests of real frameworks may rest on a record only where nothing that decides them has changed; a wrong record hides no defect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import proved
import pytest
from proved_record import Entry, Record

from steelyard.files.paths import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]

pytest_plugins = ("pytester",)

TESTS = """
import pytest
from decides import Sources
from helper import FILE
from pathlib import Path
from steelyard.certificates import judge

WORKER = Path(__file__).parents[2] / "src" / "steelyard_worker"
SCRIPT = "script.py"

def decided(framework):
    modules = ("steelyard.measure.launch",)
    return Sources(framework, (framework,), ("line",), computing=True, modules=modules, files=("docs/*.md",))

@pytest.mark.decided(by=decided)
@pytest.mark.parametrize("framework", ["alpha", "beta"])
def test_cell(framework):
    found = (WORKER / "workloads" / "line" / f"{framework}.py").read_text()
    if "skip" in found:
        pytest.skip("nothing to show")
    assert "wrong" not in found

@pytest.mark.slow
@pytest.mark.decided(by=lambda: decided("alpha"))
def test_slow():
    pass

def test_undeclared():
    pass
"""
ALPHA, BETA = "test_cell[alpha]", "test_cell[beta]"
FILES = {
    "pytest.ini": "[pytest]\npythonpath = src\nmarkers =\n  slow: of make test-all\n",
    "docs/read.md": "",
    "src/steelyard/__init__.py": "",
    "src/steelyard/certificates/__init__.py": "",
    "src/steelyard/certificates/judge.py": "from steelyard.results import trials\n",
    "src/steelyard/results/__init__.py": "",
    "src/steelyard/results/trials.py": "",
    "src/steelyard/measure/__init__.py": "",
    "src/steelyard/measure/launch.py": "def launch():\n    from steelyard.measure import limits\n    from steelyard.plan import studies\n",
    "src/steelyard/plan/studies/__init__.py": "",
    "src/steelyard/plan/studies/quick.toml": "",
    "src/steelyard/measure/limits.py": "",
    "src/steelyard/measure/limits.toml": "",
    "src/steelyard/measure/rounds.py": "",
    "src/steelyard/environments/locks/alpha-1-cpu.txt": "",
    "src/steelyard/environments/locks/beta-1-cpu.txt": "",
    "src/steelyard_worker/__init__.py": "",
    "src/steelyard_worker/certify.py": "",
    "src/steelyard_worker/timing.py": "",
    "src/steelyard_worker/frameworks/base.py": "",
    "src/steelyard_worker/frameworks/alpha/adapter.py": "",
    "src/steelyard_worker/frameworks/alpha/framework.toml": "",
    "src/steelyard_worker/frameworks/beta/adapter.py": "",
    "src/steelyard_worker/workloads/line/alpha.py": "",
    "src/steelyard_worker/workloads/line/beta.py": "",
    "src/steelyard_worker/workloads/line/spec.toml": "",
    "src/steelyard_worker/workloads/other/alpha.py": "",
    "tests/conftest.py": "",
    "tests/conformance/conftest.py": "",
    "tests/conformance/helper.py": 'FILE = "helper"\n',
    "tests/conformance/script.py": "",
    "tests/conformance/test_scripted_cells.py": TESTS,
}


@pytest.fixture
def root(pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small repository with two cells."""
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(proved, "part_of_commit", lambda root: proved.PARTS - 1)  # nobody's: there are two places
    for name, text in FILES.items():
        (pytester.path / name).parent.mkdir(parents=True, exist_ok=True)
        (pytester.path / name).write_text(text)
    return pytester.path


@pytest.fixture
def run(pytester: pytest.Pytester, root: Path) -> Run:
    """Run the small repository's tests; returns {test: outcome} of those that ran, and the closing sentence."""

    def tests(chosen: str, *more: str, code: int = 0) -> tuple[dict[str, str], str]:
        words = ("-p", "proved", "-p", "no:xdist", "-p", "no:cacheprovider", "-v", "-m", "not slow", *more)
        done = pytester.runpytest_inprocess(*words, *(("--proved", chosen) if chosen else ()))
        assert done.ret == code, done.outlines
        lines = [line.split() for line in done.outlines if line.startswith("tests/") and "::" in line]
        closing = [line for line in done.outlines if line.startswith("Tests of real frameworks")]
        return {line[0].partition("::")[2]: line[1] for line in lines}, " ".join(closing)

    return tests


def recorded(root: Path) -> Record:
    found, problem = Record.read(root / proved.RECORD)
    assert problem == ""
    return found


def alone(root: Path) -> None:
    """Leave the repository's record only, as on a new machine."""
    (cache_folder() / proved.LOCAL).unlink(missing_ok=True)


@pytest.fixture
def proven(run: Run, root: Path) -> Path:
    """The repository with a record of both cells, and no local record."""
    found, _ = run("anew")
    assert found == {ALPHA: "PASSED", BETA: "PASSED", "test_undeclared": "PASSED"}
    alone(root)
    return root


def test_what_is_recorded_is_left_out_and_counted(run: Run, proven: Path) -> None:
    found, sentence = run("use")
    assert found == {"test_undeclared": "PASSED"}
    assert ": 1 were run (0 are this commit's sample, 0 are not in the record, 1 always run), and 2 rest" in sentence


def test_without_the_option_everything_that_is_asked_for_runs(run: Run, proven: Path) -> None:
    assert run("")[0].keys() == {ALPHA, BETA, "test_undeclared"}


CHANGED = {
    "src/steelyard_worker/workloads/line/alpha.py": "its implementation",
    "src/steelyard_worker/workloads/line/spec.toml": "the specification",
    "src/steelyard_worker/frameworks/alpha/adapter.py": "the adapter",
    "src/steelyard_worker/frameworks/alpha/framework.toml": "the facts of the framework",
    "src/steelyard_worker/frameworks/alpha/new.py": "a new file of the adapter",
    "src/steelyard_worker/frameworks/base.py": "what frameworks share",
    "src/steelyard_worker/certify.py": "a file of the worker that computes",
    "src/steelyard/environments/locks/alpha-1-cpu.txt": "its packages",
    "src/steelyard/certificates/judge.py": "code that the test imports",
    "src/steelyard/measure/launch.py": "a module that the test starts",
    "src/steelyard/measure/limits.py": "what that module imports in a function",
    "src/steelyard/measure/limits.toml": "data beside it",
    "src/steelyard/plan/studies/__init__.py": "how studies are read",
    "docs/read.md": "a further file",
    "tests/conftest.py": "fixtures",
    "tests/conformance/helper.py": "a helper of the tests",
    "tests/conformance/script.py": "a script that the test names",
}
OF_BOTH = {name for name in CHANGED if "alpha" not in name}


@pytest.mark.parametrize("name", CHANGED, ids=CHANGED.values())
def test_a_change_of_what_decides_a_test_runs_it(run: Run, proven: Path, name: str) -> None:
    path = proven / name
    path.write_text((path.read_text() if path.exists() else "") + "\nchanged = 1\n")
    found, _ = run("use")
    assert found.keys() == {ALPHA, "test_undeclared"} | ({BETA} if name in OF_BOTH else set())


BARE = """
def double(number):
    return 2 * number

class Limits:
    size = 1

class Refused(Exception):
    pass
"""
DOCUMENTED = '''
def double(number):  # of any type
    """Return twice the number."""

    return (2*number)

class Limits:
    """What a process may use."""
    size = 1
    """In bytes."""

class Refused(Exception):
    """More than a process may use."""
'''


@pytest.mark.parametrize("name", [name for name in CHANGED if name.endswith(".py")])
def test_comments_docstrings_and_layout_decide_nothing(run: Run, proven: Path, name: str) -> None:
    path = proven / name
    code = path.read_text() if path.exists() else ""
    path.write_text(code + BARE)
    run("add")
    path.write_text(f'"""What this file has."""\n{code}{DOCUMENTED}')
    assert run("use")[0].keys() == {"test_undeclared"}
    path.write_text(f"{code}{DOCUMENTED}".replace("2*number", "3*number"))
    assert run("use")[0].keys() == {ALPHA, "test_undeclared"} | ({BETA} if name in OF_BOTH else set())


@pytest.mark.parametrize(
    "name",
    [
        "src/steelyard_worker/workloads/other/alpha.py",
        "src/steelyard_worker/timing.py",
        "src/steelyard/results/trials.py",
        "src/steelyard/measure/rounds.py",
        "src/steelyard/plan/studies/quick.toml",
    ],
)
def test_a_change_of_anything_else_does_not(run: Run, proven: Path, name: str) -> None:
    (proven / name).write_text("changed = 1\n")
    assert run("use")[0].keys() == {"test_undeclared"}


@pytest.mark.parametrize(
    ("text", "replacement", "runs"),
    [
        ('assert "wrong" not in found', 'assert "bad" not in found', {ALPHA, BETA}),
        ('["alpha", "beta"]', '["alpha"]', set()),
        (
            "def test_undeclared",
            "# A comment, and another test.\ndef test_another():\n    pass\n\ndef test_undeclared",
            set(),
        ),
    ],
)
def test_of_a_tests_file_its_own_code_counts(
    run: Run, proven: Path, text: str, replacement: str, runs: set[str]
) -> None:
    path = proven / "tests" / "conformance" / "test_scripted_cells.py"
    assert path.read_text().count(text) == 1
    path.write_text(path.read_text().replace(text, replacement))
    assert run("use")[0].keys() - {"test_undeclared", "test_another"} == runs


def test_a_mistake_behind_an_old_key_is_found(run: Run, proven: Path) -> None:
    (proven / "src/steelyard_worker/workloads/line/alpha.py").write_text("wrong = 1\n")
    found, _ = run("use", code=1)
    assert found == {ALPHA: "FAILED", "test_undeclared": "PASSED"}


def test_a_key_that_was_edited_by_hand_proves_nothing(run: Run, proven: Path) -> None:
    path = proven / proved.RECORD
    key = recorded(proven).find(proved.machine(), f"tests/conformance/test_scripted_cells.py::{ALPHA}")
    assert key
    path.write_text(path.read_text().replace(key.key, key.key[::-1]))
    assert run("use")[0].keys() == {ALPHA, "test_undeclared"}


def test_the_record_of_another_kind_of_machine_proves_nothing_here_and_is_kept(
    run: Run, proven: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = proved.machine()
    monkeypatch.setattr(proved, "machine", lambda: "Linux x86_64, amx")
    assert run("use")[0].keys() == {ALPHA, BETA, "test_undeclared"}
    run("add")
    assert recorded(proven).entries.keys() == {here, "Linux x86_64, amx"}


@pytest.mark.parametrize("damaged", ["<<<<<<< HEAD\n", "\udcff", "[[", 'a = "b"\n', "[here]\na = 1\n"])
def test_a_damaged_record_proves_nothing(run: Run, proven: Path, damaged: str) -> None:
    (proven / proved.RECORD).write_bytes(damaged.encode("utf-8", "surrogateescape"))
    assert run("use")[0].keys() == {ALPHA, BETA, "test_undeclared"}


@pytest.mark.parametrize("damage", ['key = ""', "key = 1", 'key = "a", more = 1', 'date = "2026-01-01"'])
def test_a_damaged_line_counts_as_missing(run: Run, proven: Path, damage: str) -> None:
    lines = (proven / proved.RECORD).read_text().splitlines()
    name = f'"tests/conformance/test_scripted_cells.py::{ALPHA}"'
    assert sum(line.startswith(name) for line in lines) == 1
    changed = [f"{name} = {{ {damage} }}" if line.startswith(name) else line for line in lines]
    (proven / proved.RECORD).write_text("\n".join(changed))
    assert run("use")[0].keys() == {ALPHA, "test_undeclared"}


def test_the_sample_runs_whatever_the_record_says(run: Run, proven: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake that no key shows: the record has the key of the wrong code. It is found, and stays found when the sample moves on."""
    (proven / "src/steelyard_worker/workloads/line/beta.py").write_text("wrong = 1\n")
    name = f"tests/conformance/test_scripted_cells.py::{BETA}"
    run("use", code=1)
    local, _ = Record.read(cache_folder() / proved.LOCAL)
    failed = local.find(proved.machine(), name)
    assert failed
    assert failed.failed
    known = recorded(proven).changed(proved.machine(), {name: Entry(failed.key, failed.date, failed.method)})
    known.write(proven / proved.RECORD)
    alone(proven)
    assert run("use")[0] == {"test_undeclared": "PASSED"}, "the record is wrong, and this is not in the sample"

    with monkeypatch.context() as patch:
        patch.setattr(proved, "part_of_commit", lambda root: 1)
        found, sentence = run("use", code=1)
        assert found == {BETA: "FAILED", "test_undeclared": "PASSED"}
        assert "2 were run (1 are this commit's sample" in sentence
    assert run("use", code=1)[0] == {BETA: "FAILED", "test_undeclared": "PASSED"}
    assert run("add", code=1)[0] == {BETA: "FAILED", "test_undeclared": "PASSED"}
    assert not recorded(proven).find(proved.machine(), name)


def test_what_passed_here_is_not_repeated_here_and_added_without_running(run: Run, root: Path) -> None:
    assert run("use")[0].keys() == {ALPHA, BETA, "test_undeclared"}
    assert not (root / proved.RECORD).exists(), "`make test` leaves the repository as it is"
    assert run("use")[0].keys() == {"test_undeclared"}
    assert run("add")[0].keys() == {"test_undeclared"}
    assert len(recorded(root).names(proved.machine())) == 2


def test_everything_is_proved_anew_and_what_failed_or_is_gone_leaves_the_record(run: Run, proven: Path) -> None:
    machine, name = proved.machine(), "tests/conformance/test_scripted_cells.py::"
    more = {each: Entry("0", "2026-01-01", 1) for each in (f"{name}test_gone", "tests/gone.py::test_gone")}
    recorded(proven).changed(machine, more).write(proven / proved.RECORD)
    (proven / "src/steelyard_worker/workloads/line/beta.py").write_text("wrong = 1\n")
    found, sentence = run("anew", code=1)
    assert found == {ALPHA: "PASSED", BETA: "FAILED", "test_undeclared": "PASSED"}
    assert "all were run anew" in sentence
    assert recorded(proven).names(machine) == {f"{name}{ALPHA}"}


def test_a_skipped_test_has_shown_nothing(run: Run, root: Path) -> None:
    (root / "src/steelyard_worker/workloads/line/beta.py").write_text("skip = 1\n")
    assert run("anew")[0][BETA] == "SKIPPED"
    assert recorded(root).names(proved.machine()) == {f"tests/conformance/test_scripted_cells.py::{ALPHA}"}
    assert run("use")[0].keys() == {BETA, "test_undeclared"}


def test_a_test_that_rests_on_something_else_is_not_recorded(run: Run, root: Path) -> None:
    path = root / "tests" / "conformance" / "test_scripted_cells.py"
    text = path.read_text().replace("def test_cell(framework):", "def test_cell(framework, record_property):")
    path.write_text(
        text.replace("    found =", f'    record_property("{proved.UNRECORDED}", "an arbiter")\n    found =')
    )
    run("add")
    assert recorded(root).names(proved.machine()) == set()


def test_slow_tests_are_not_in_the_record(run: Run, root: Path) -> None:
    assert run("anew", "-m", "slow")[0] == {"test_slow": "PASSED"}
    assert recorded(root).names(proved.machine()) == set()


def test_a_selection_replaces_only_its_own_lines(run: Run, proven: Path) -> None:
    before = (proven / proved.RECORD).read_text()
    run("anew", "-k", "alpha")
    assert (proven / proved.RECORD).read_text() == before
