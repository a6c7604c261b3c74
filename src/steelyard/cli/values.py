"""Read the texts of options; UserError says what a malformed one must be."""

import math
import re

from steelyard.errors import UserError

MOST_THREADS = 4096
MOST_WORKERS = 1024
MOST_SAMPLES = 10_000_000
MOST_SEED = 2**32 - 1  # the largest that every framework accepts


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


def minutes(text: str) -> float:
    """Read a number of minutes; 0 means no limit."""
    return _number(text, "--minutes", 0.0, "a number of at least 0")


def silence(text: str) -> float:
    """Read a number of seconds."""
    return _number(text, "--silence", 1.0, "a number of seconds of at least 1")


def _number(text: str, option: str, least: float, meaning: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not least <= found < math.inf:
        raise UserError(f"{option} must be {meaning}, not '{text}'.")
    return found


def loader_workers(text: str) -> int:
    """Read a number of processes."""
    return _count(text, 0, MOST_WORKERS, f"--loader-workers must be a number from 0 to {MOST_WORKERS}, not '{text}'.")


def seed(text: str) -> int:
    """Read a seed."""
    return _count(text, 0, MOST_SEED, f"--seed must be a whole number from 0 to {MOST_SEED:,}, not '{text}'.")


def threads(text: str) -> int:
    """Read a number of threads, or `default`, which is 0."""
    wrong = f"--threads must be a number from 1 to {MOST_THREADS}, or 'default', not '{text}'."
    return 0 if text == "default" else _count(text, 1, MOST_THREADS, wrong)


def batch(text: str) -> int:
    """Read a number of samples."""
    return _count(
        text, 1, MOST_SAMPLES, f"--batch must be a number of samples from 1 to {MOST_SAMPLES:,}, not '{text}'."
    )


def _count(text: str, least: int, most: int, wrong: str) -> int:
    if not re.fullmatch(r"[0-9]{1,20}", text) or not least <= int(text) <= most:
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
