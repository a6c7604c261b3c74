"""Read the texts of options; UserError says what a malformed one must be."""

import re

from steelyard.errors import UserError


def folder(text: str) -> str:
    """Return the absolute path of a folder; an empty text stays empty."""
    from pathlib import Path  # not needed for --help

    return str(Path(text).expanduser().absolute()) if text else ""


def interpreter(text: str) -> tuple[str, str]:
    """Read `NAME=PYTHON`; returns the name of the environment and the absolute path of the interpreter."""
    name, _, python = text.partition("=")
    if not python:
        raise UserError(f"--env must be NAME=PYTHON, such as NAME=/opt/venv/bin/python, not '{text}'.")
    return name, folder(python)


def threads(text: str) -> int:
    """Read a number of threads, or `default`, which is 0."""
    wrong = f"--threads must be a number of at least 1, or 'default', not '{text}'."
    return 0 if text == "default" else _from_1(text, wrong)


def batch(text: str) -> int:
    """Read a number of samples."""
    return _from_1(text, f"--batch must be a number of samples of at least 1, not {text}.")


def _from_1(text: str, wrong: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UserError(wrong)
    return int(text)


def rounds(text: str) -> tuple[int, int]:
    """Read `5` or `3-8`."""
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if not match:
        raise UserError(f"--rounds must be a number or a range such as 3-8, not '{text}'.")
    return int(match[1]), int(match[2] or match[1])


def delta(text: str) -> float:
    """Read a share between 0 and 1."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise UserError(f"--delta must be a number between 0 and 1, such as 0.02 for 2 %, not {text}.")
    return value
