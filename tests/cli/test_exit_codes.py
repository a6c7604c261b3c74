"""How the command line ends: the exit code of each kind of end, and what stands on standard error."""

from __future__ import annotations

import argparse
import errno
import re
import signal
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from steelyard.cli import descriptions, outcome
from steelyard.cli import main as cli
from steelyard.cli.commands import certify
from steelyard.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Ends = Callable[[int | BaseException], int]


@pytest.fixture(autouse=True)
def _handlers_of_signals() -> Iterator[None]:
    """Put back what `main` sets for the whole process."""
    numbers = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Ends:
    """Run `steelyard doctor` where the command returns or raises this."""

    def run(end: int | BaseException) -> int:
        def execute(arguments: argparse.Namespace) -> int:
            if isinstance(end, BaseException):
                raise end
            return end

        monkeypatch.setattr(cli.importlib, "import_module", lambda name: SimpleNamespace(execute=execute))
        return cli.main(["doctor"])

    return run


@pytest.mark.parametrize("code", [0, 1, 3])
def test_the_code_of_a_command_is_that_of_the_program(ends: Ends, code: int) -> None:
    assert ends(code) == code


def test_an_error_of_the_user_is_one_line_and_code_two(ends: Ends, capsys: pytest.CaptureFixture[str]) -> None:
    assert ends(UserError("This is wrong.\x1b[2J\nDo that.")) == UserError.exit_code == 2
    assert capsys.readouterr() == ("", "steelyard: This is wrong.\\x1b[2J\\nDo that.\n")


def test_an_interruption_has_the_code_of_the_signal(ends: Ends, capsys: pytest.CaptureFixture[str]) -> None:
    assert ends(KeyboardInterrupt()) == 128 + signal.SIGINT
    assert capsys.readouterr().err == "steelyard: stopped.\n"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_file_system_that_the_user_can_mend_is_named_with_what_to_do(
    ends: Ends, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    assert ends(OSError(number, "No room", "/a/file")) == UserError.exit_code
    assert capsys.readouterr().err == f"steelyard: /a/file: No room. {cli.DISK_ADVICE}\n"


def test_any_other_error_of_the_system_is_a_bug_and_keeps_its_traceback(ends: Ends) -> None:
    with pytest.raises(OSError, match="Bad"):
        ends(OSError(errno.EBADF, "Bad file"))


def test_a_bug_keeps_its_traceback(ends: Ends) -> None:
    with pytest.raises(ZeroDivisionError):
        ends(ZeroDivisionError())


def test_an_unknown_command_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["dotcor"]) == UserError.exit_code
    assert "There is no command 'dotcor'." in (said := capsys.readouterr().err)
    assert "doctor" in said


@pytest.mark.parametrize("argv", [[], ["-h"], ["--help"]])
def test_without_a_command_every_command_is_listed(capsys: pytest.CaptureFixture[str], argv: list[str]) -> None:
    assert cli.main(argv) == 0
    listed = capsys.readouterr().out
    assert all(f"\n  {name:<14}{line}\n" in listed for name, line in cli.COMMANDS.items())


def test_termination_is_treated_as_an_interruption(ends: Ends) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ends(0)
    assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ends(0)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN, "what the caller ignores stays ignored"


@pytest.mark.parametrize(
    ("found", "cases", "code"),
    [
        ({"a": {"passed": True}, "b": {"passed": True}}, 2, 0),
        ({"a": {"passed": True}, "b": {"passed": False}}, 2, 3),
        ({"a": {"passed": True}}, 2, 3),  # one had no environment
        ({"a": {}}, 1, 1),
        ({"a": {"passed": True}, "b": {"passed": False, "on_purpose": "another algorithm"}}, 2, 0),
        ({"a": {"passed": False}, "b": {"passed": False}}, 2, 1),
        ({}, 2, 1),
    ],
)
def test_certify_says_whether_all_some_or_none_were_certified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: dict[str, dict[str, Any]], cases: int, code: int
) -> None:
    from steelyard import feasibility, stages

    plan = SimpleNamespace(study=SimpleNamespace(name="study"), variants=range(cases))
    names = {name: SimpleNamespace(key=name) for name in "ab"}
    monkeypatch.setattr(certify, "_request", lambda arguments: (None, None))
    monkeypatch.setattr(certify, "_print", lambda found: None)
    monkeypatch.setattr(feasibility, "planned", lambda options: (plan, ()))
    monkeypatch.setattr(stages, "certify", lambda *_, **__: found)
    monkeypatch.setattr(certify.record, "read", lambda folder: SimpleNamespace(plan=SimpleNamespace(by_id=names)))
    monkeypatch.setattr(certify.selection, "begun", lambda *_: nullcontext(tmp_path))
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    arguments = argparse.Namespace(
        runs=str(tmp_path), json=False, plain=True, fresh=False, no_wait=False, wait_minutes=None
    )
    assert certify.execute(arguments) == code


def _view(*contenders: tuple[str, str], state: str = "complete", unavailable: int = 0) -> Any:
    """Return a view of contenders with a failure, or none, and the state of their certificate."""
    each = [
        SimpleNamespace(
            failure=failure, proof=SimpleNamespace(state=proof), case=SimpleNamespace(id=str(n)), profile=failure == ""
        )
        for n, (failure, proof) in enumerate(contenders)
    ]
    variants = range(len(each))
    plan, available = (SimpleNamespace(variants=range(len(variants) + more)) for more in (unavailable, 0))
    record = SimpleNamespace(state=state, plan=plan, available=available)
    return SimpleNamespace(comparisons=[SimpleNamespace(contenders=each)], record=record)


RIGHT, FAILED, REJECTED = ("", "certified"), ("killed", "certified"), ("", "rejected")


@pytest.mark.parametrize(
    ("found", "code", "sentence"),
    [
        (_view(RIGHT, RIGHT), 0, ""),
        (_view(RIGHT, ("", "none")), 0, ""),  # without a second framework there is no certificate
        (_view(RIGHT, FAILED), 3, "1 contender is in no verdict, because "),
        (_view(RIGHT, REJECTED), 3, "1 contender is in no verdict, because "),
        (_view(FAILED, REJECTED, RIGHT), 3, "2 contenders are in no verdict, because "),
        (_view(RIGHT, unavailable=1), 3, "1 contender is in no verdict, because "),
        (_view(FAILED, FAILED, state="failed"), 1, "Every process of this run failed"),
    ],
)
def test_a_run_says_whether_a_contender_was_left_out(found: Any, code: int, sentence: str) -> None:
    ends, said = outcome.of_run(found)
    assert ends == code
    assert said.startswith(sentence)
    assert bool(said) is bool(sentence)


@pytest.mark.parametrize(
    ("contenders", "wanted", "code"),
    [
        ((RIGHT, RIGHT), "01", 0),
        ((RIGHT, FAILED), "01", 3),
        ((RIGHT, FAILED), "0", 0),
        ((RIGHT, FAILED), "1", 1),
        ((FAILED, FAILED), "01", 1),
    ],
)
def test_an_explanation_says_whether_all_some_or_none_were_explained(
    contenders: tuple[tuple[str, str], ...], wanted: str, code: int
) -> None:
    assert outcome.of_explanation(_view(*contenders), set(wanted)) == code


def test_one_table_says_the_codes_of_all_three_commands() -> None:
    for command in ("run", "certify", "explain"):
        assert descriptions.EXIT_CODES in descriptions.DESCRIPTIONS[command]
    listed = {int(found) for found in re.findall(r"^  (\d+) ", descriptions.EXIT_CODES, re.MULTILINE)}
    known = {0, cli.EXIT_NO_RESULT, UserError.exit_code, cli.EXIT_LEFT_OUT, cli.EXIT_INTERRUPTED, cli.EXIT_PIPE}
    assert listed == known
    page = (Path(__file__).parents[2] / "docs" / "reference" / "exit-codes.md").read_text()
    assert {int(found) for found in re.findall(r"^\| `(\d+)` \|", page, re.MULTILINE)} == known
