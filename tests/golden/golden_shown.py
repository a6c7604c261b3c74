"""What steelyard shows of a recorded run, as texts that are the same on every machine and on every day.

Injected: the time zone, the home folder, the user's name, the width of the terminal. Replaced: the folder that the record was
unpacked into, which always has the same length, so that lines break at the same words.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import golden_archives
import golden_pages
import jinja2
from golden_commands import Shown, commands_of

from steelyard import report
from steelyard.cli import outcome
from steelyard.cli.commands import selection
from steelyard.cli.main import main
from steelyard.files import paths
from steelyard.report import explained_lines
from steelyard.results import run_folders, trials
from steelyard.results.store import Store

EXPECTED = Path(__file__).parent / "expected"
# The length of the folder's path: more than temporary folders have, less than the narrowest terminal.
ROOT_LENGTH = 64
ROOT = "/ROOT"
# Numbers of JSON are rounded to so many digits: the last ones differ between versions of NumPy and SciPy.
DIGITS = 9
LINE = 120


@dataclass(frozen=True)
class _Outcome:
    code: int
    out: str
    err: str


def shown(kind: str) -> dict[str, str]:
    """Return what is shown of a kind: name of the file -> text."""
    with _unpacked(kind) as root, _surroundings(root), contextlib.chdir(root):
        _index(root)
        return {name: text for each in commands_of(kind) for name, text in _texts(each, root).items() if text}


def _index(root: Path) -> None:
    """Read the runs into their index: a command that does so says how far it is, if it takes long."""
    with contextlib.redirect_stderr(io.StringIO()), contextlib.closing(Store(root / "runs")) as store:
        store.history()


def _texts(each: Shown, root: Path) -> dict[str, str]:
    """Return the texts of one command: what it prints, and the page that it writes."""
    with mock.patch.dict(os.environ, {"COLUMNS": str(each.width)}):
        done = _execute(each.arguments)
    rest = f"\n[standard error]\n{done.err}" if done.err else ""
    rest += f"\n[exit code {done.code}]\n" if done.code else ""
    if "--json" in each.arguments and done.out:
        return {f"{each.name}.json": _scrubbed(f"{_rounded(json.loads(done.out))}\n{rest}", root)}
    printed = f"$ steelyard {' '.join(each.arguments)}\n{done.out}{rest}"
    texts = {f"{each.name}.txt": _scrubbed(printed, root)}
    for page in each.pages:
        html = (root / page).read_text(encoding="utf-8") if (root / page).exists() else ""
        stem = Path(page).stem
        texts[f"page-{stem}.txt"] = _scrubbed(golden_pages.text_of(html), root) if html else ""
        texts[f"figures-{stem}.txt"] = _scrubbed(golden_pages.figures_of(html), root)
    return texts


def _execute(arguments: tuple[str, ...]) -> _Outcome:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = _explain(arguments) if arguments[0] == "explain" else main(list(arguments))
        except SystemExit as stopped:
            code = int(stopped.code or 0)
    return _Outcome(code, out.getvalue(), err.getvalue())


def _explain(arguments: tuple[str, ...]) -> int:
    """Show the profiles of a record as `steelyard explain` does, which would take those that are missing."""
    view = report.view(run_folders.find(paths.runs_folder(), arguments[2]))
    ids = {variant.case.id for variant in view.record.plan.variants}
    if "--json" in arguments:
        selection.print_json(explained_lines.as_dict(view, ids, Path("report.html")))
    else:
        explained_lines.show(view, ids)
    return outcome.of_explanation(view, ids)


def _scrubbed(text: str, root: Path) -> str:
    text = text.replace(str(root), ROOT)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def _rounded(value: Any, indent: int = 0) -> str:
    """Return JSON with one property on a line, and lists of numbers or texts on as few as fit."""
    pad = " " * (indent + 1)
    if isinstance(value, dict) and value:
        inside = [f"{pad}{json.dumps(str(name))}: {_rounded(each, indent + 1)}" for name, each in value.items()]
        return "{\n" + ",\n".join(inside) + "\n" + " " * indent + "}"
    if isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        return "[\n" + ",\n".join(pad + _rounded(each, indent + 1) for each in value) + "\n" + " " * indent + "]"
    if isinstance(value, list):
        return "[" + _wrapped([_rounded(each) for each in value], pad) + "]"
    if isinstance(value, float):
        return json.dumps(float(f"{value:.{DIGITS}g}"))
    return json.dumps(value, ensure_ascii=False)


def _wrapped(texts: list[str], pad: str) -> str:
    lines, line = [], ""
    for text in texts:
        if line and len(line) + len(text) > LINE:
            lines.append(line)
            line = ""
        line += f"{', ' if line else ''}{text}"
    return f",\n{pad}".join([*lines, line])


@contextlib.contextmanager
def _unpacked(kind: str) -> Iterator[Path]:
    """Unpack a record into a folder whose path has a fixed length, and remove it at the end."""
    base = Path(tempfile.mkdtemp())
    root = base / "r".ljust(ROOT_LENGTH - len(str(base)) - 1, "-")
    root.mkdir()
    try:
        golden_archives.unpack(kind, root)
        yield root
    finally:
        shutil.rmtree(base, ignore_errors=True)


@contextlib.contextmanager
def _surroundings(root: Path) -> Iterator[None]:
    """Set what a text could depend on: variables, the time zone; compile every template once, and read every trial once."""
    home = {"HOME": "/home/somebody", "USER": "somebody", "LOGNAME": "somebody", "USERNAME": "somebody"}
    own = {"STEELYARD_RUNS": root, "STEELYARD_CACHE": root / "cache", "STEELYARD_STATE": root / "state", "TZ": "UTC"}
    kept = {
        name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "PYTHONWARNINGS")
    }
    terminal = {"TERM": "dumb", "LC_ALL": "C.UTF-8", "LINES": "50"}
    with (
        mock.patch.dict(
            os.environ, {**kept, **home, **{name: str(value) for name, value in own.items()}, **terminal}, clear=True
        ),
        mock.patch.object(jinja2.Environment, "compile", _compiled_once(jinja2.Environment.compile)),
        mock.patch.object(trials, "read", functools.cache(trials.read)),
    ):
        time.tzset()
        try:
            yield
        finally:
            os.environ.pop("TZ")
    time.tzset()


def _compiled_once(compile_template: Callable[..., Any]) -> Callable[..., Any]:
    def compiled(self: jinja2.Environment, source: str, name: str | None = None, *more: Any, **options: Any) -> Any:
        key = (source, name, more, tuple(options.items()))
        if key not in _COMPILED:
            _COMPILED[key] = compile_template(self, source, name, *more, **options)
        return _COMPILED[key]

    return functools.wraps(compile_template)(compiled)


_COMPILED: dict[Any, Any] = {}
