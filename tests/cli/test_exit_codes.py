"""How the command line ends: the exit code of each kind of end, and what stands on standard error."""

from __future__ import annotations

import argparse
import errno
import signal
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from steelyard.cli import main as cli
from steelyard.cli.commands import certify
from steelyard.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

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
        ({"a": {"passed": True}, "b": {"passed": False}}, 2, 1),
        ({"a": {"passed": True}}, 2, 1),  # one had no environment
        ({"a": {}}, 1, 1),
    ],
)
def test_certify_ends_with_one_unless_everything_was_certified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: dict[str, dict[str, bool]], cases: int, code: int
) -> None:
    from steelyard import fitting
    from steelyard import run as runs

    plan = SimpleNamespace(study=SimpleNamespace(name="study"), variants=range(cases))
    names = {name: SimpleNamespace(key=name) for name in "ab"}
    monkeypatch.setattr(certify, "_request", lambda arguments: (None, None))
    monkeypatch.setattr(certify, "_print", lambda found: None)
    monkeypatch.setattr(fitting, "planned", lambda options: (plan, ()))
    monkeypatch.setattr(runs, "certify", lambda *_, **__: found)
    monkeypatch.setattr(certify.record, "read", lambda folder: SimpleNamespace(plan=SimpleNamespace(by_id=names)))
    monkeypatch.setattr(certify.selection, "begun", lambda *_: nullcontext(tmp_path))
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    arguments = argparse.Namespace(
        runs=str(tmp_path), json=False, plain=True, fresh=False, no_wait=False, wait_minutes=None
    )
    assert certify.execute(arguments) == code
