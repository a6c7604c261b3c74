"""What several commands do with their arguments: build Options, find folders, open the index, choose the view."""

from __future__ import annotations

import errno
import os
import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.errors import UserError
from steelyard.files import paths
from steelyard.plan.options import Options

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from steelyard.console import Screen
    from steelyard.results.store import Store


def options_of(arguments: argparse.Namespace, **more: Any) -> Options:
    """Return the arguments as Options; UserError: a malformed value."""
    return Options(
        study=arguments.study, workloads=tuple(arguments.workload), frameworks=tuple(arguments.framework),
        modes=tuple(arguments.mode), knobs=tuple(arguments.knob), optimizer=arguments.optimizer,
        optimizer_implementation=arguments.optimizer_implementation, device=arguments.device, precision=arguments.precision,
        threads=_threads(arguments.threads), deterministic=arguments.deterministic,
        data=str(Path(arguments.data).expanduser().absolute()) if arguments.data else "",
        batch=_batch(arguments.batch), synthetic=arguments.synthetic,
        workload_folders=folders_of(arguments.workloads), framework_folders=folders_of(arguments.frameworks),
        external=external_of(arguments.env), seed=arguments.seed, silence_s=arguments.silence, **more,
    )  # fmt: skip


def folders_of(texts: list[str]) -> tuple[str, ...]:
    """Return absolute paths of the folders named on the command line."""
    return tuple(str(Path(text).expanduser().absolute()) for text in texts)


def runs_of(arguments: argparse.Namespace) -> Path:
    """Return the folder that holds the runs."""
    return Path(arguments.runs).expanduser().absolute() if arguments.runs else paths.runs_folder()


@contextmanager
def store_of(root: Path) -> Iterator[Store]:
    """Open the index of a folder of runs; when it is closed, print its notice, if any, to standard error."""
    from steelyard.results.store import Store

    store = Store(root)
    try:
        yield store
    finally:
        store.close()
        if store.notice:
            print(f"steelyard: {store.notice}", file=sys.stderr)


def check_cache() -> None:
    """Reject a cache folder that cannot be written, before anything is created."""
    folder = paths.cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise UserError(
            f"The cache folder {folder} cannot be written ({error.strerror}). Set STEELYARD_CACHE to another folder."
        ) from None


def rounds_of(text: str | None) -> tuple[int, int] | None:
    """Read `5` or `3-8`."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if not match:
        raise UserError(f"--rounds must be a number or a range such as 3-8, not '{text}'.")
    low = int(match[1])
    return low, int(match[2] or low)


def screen_of(arguments: argparse.Namespace) -> Screen:
    """Return the live view for a terminal, plain lines for anything else."""
    from steelyard.console import PlainScreen

    if arguments.plain or not sys.stderr.isatty():
        return PlainScreen()
    from steelyard.cli.live import LiveScreen

    return LiveScreen()


def _threads(text: str | None) -> int | None:
    if text is None:
        return None
    if text == "default":
        return 0
    if not text.isdigit() or int(text) < 1:
        raise UserError(f"--threads must be a number of at least 1, or 'default', not '{text}'.")
    return int(text)


def _batch(number: int | None) -> int:
    if number is not None and number < 1:
        raise UserError(f"--batch must be a number of samples of at least 1, not {number}.")
    return number or 0


def external_of(texts: list[str]) -> dict[str, str]:
    """Read `NAME=PYTHON` texts; returns {environment name: absolute path of the interpreter}."""
    found = {}
    for text in texts:
        name, equals, python = text.partition("=")
        if not equals or not python:
            raise UserError(f"--env must be NAME=PYTHON, such as NAME=/opt/venv/bin/python, not '{text}'.")
        found[name] = str(Path(python).expanduser().absolute())
    return found
