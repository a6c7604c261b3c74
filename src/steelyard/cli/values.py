"""Parse the texts of options. UserError says how a malformed one must look."""

import math
import re
from typing import TYPE_CHECKING

from steelyard.errors import UserError
from steelyard.files import ranges
from steelyard.files.ranges import Range

if TYPE_CHECKING:
    from datetime import date

    from steelyard.wording.prices import Price

SILENCE = Range(1)
WEIGHT = Range(above=0, most=1_000_000)
EPOCHS = Range(1, 1_000_000)
NODES = Range(1, 10_000)


def folder(text: str) -> str:
    """Return the absolute path of a folder; an empty text stays empty."""
    from pathlib import Path  # not needed for --help

    return str(Path(text).expanduser().absolute()) if text else ""


def weights(text: str) -> str:
    """Read `FILE` or `FRAMEWORK:FILE`; returns it with the absolute path of the file."""
    from pathlib import Path  # not needed for --help

    named = re.fullmatch(r"([a-z][a-z0-9_-]*):(.*)", text, re.DOTALL)
    framework, path = named.groups() if named and not Path(text).exists() else ("", text)
    if not path:
        raise UserError(f"--weights must be FILE or FRAMEWORK:FILE, not '{text}'.")
    return f"{framework}:{folder(path)}" if framework else folder(path)


def interpreter(text: str) -> tuple[str, str]:
    """Read `NAME=PYTHON`; returns the name of the environment and the absolute path of the interpreter."""
    name, _, python = text.partition("=")
    if not python:
        raise UserError(f"--env must be NAME=PYTHON, such as NAME=/opt/venv/bin/python, not '{text}'.")
    return name, folder(python)


def minutes(text: str) -> float:
    """Read a number of minutes; 0 means no limit."""
    return _number(text, "--minutes", ranges.MINUTES, f"a number of {ranges.MINUTES.words}")


def page(text: str) -> str:
    """Return the name of a file that a page is written to."""
    if not text.lower().endswith((".html", ".htm")):
        raise UserError(
            f"--output {text}: a page is HTML, so its name must end with .html. For data, print them with --json > FILE."
        )
    return text


def wait_minutes(text: str) -> float:
    """Read a number of minutes; 0 means not to wait."""
    return _number(text, "--wait", ranges.MINUTES, f"a number of {ranges.MINUTES.words}")


def silence(text: str) -> float:
    """Read a number of seconds."""
    return _number(text, "--silence", SILENCE, f"a number of seconds of {SILENCE.words}")


def _number(text: str, option: str, allowed: Range, meaning: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not allowed.holds(found):
        raise UserError(f"{option} must be {meaning}, not '{text}'.")
    return found


def texts(text: str) -> tuple[str, ...]:
    """Read names that are separated by commas."""
    return tuple(text.split(","))


def loader_workers(text: str) -> tuple[int, ...]:
    """Read numbers of processes."""
    return _counts(text, "--loader-workers", ranges.WORKERS, "a number")


def seeds(text: str) -> tuple[int, ...]:
    """Read seeds."""
    return _counts(text, "--seed", ranges.SEEDS, "a whole number")


def threads(text: str) -> tuple[int, ...]:
    """Read numbers of threads, or `default`, which is 0."""
    return tuple(
        0 if each == "default" else _count(each, "--threads", ranges.THREADS, "a number", ", or 'default',")
        for each in text.split(",")
    )


def batches(text: str) -> tuple[int, ...]:
    """Read numbers of samples."""
    return _counts(text, "--batch", ranges.BATCHES, "a number of samples")


def parts(text: str) -> str:
    """Return the knob for one or more numbers of parts, such as `accumulate=1,4`."""
    _counts(text, "--accumulate", ranges.BATCHES, "a number of parts of a batch")
    return f"accumulate={text}"


def samples(text: str) -> tuple[int, ...]:
    """Read numbers of training samples."""
    return _counts(text, "--train-limit", ranges.SAMPLES, "a number of samples")


def goal(text: str) -> tuple[str, float]:
    """Read `GOAL` or `GOAL=WEIGHT`; returns the name, as typed, and the weight: 1 if there is none."""
    name, equals, weight = text.partition("=")
    found = _number(weight, f"--for {name}", Range(0), "GOAL=WEIGHT with a number above 0") if equals else 1.0
    if not WEIGHT.holds(found):
        raise UserError(f"--for {text}: a weight must be {WEIGHT.words}; leave out what does not matter.")
    return name, found


def price(text: str) -> "Price":
    """Read a price such as `1.2/h` or `0.30/kWh`."""
    from steelyard.wording import prices  # not needed for --help

    return prices.price(text)


def steps(text: str) -> int:
    """Read the number of steps of a job."""
    return _count(text, "--steps", ranges.STEPS, "a number of steps")


def epochs(text: str) -> int:
    """Read the number of epochs of a job."""
    return _count(text, "--epochs", EPOCHS, "a number of epochs")


def thresholds(text: str) -> tuple[float, ...]:
    """Read `0.9,0.95`; the values in increasing order, each once."""
    meaning = "values of the test metric, such as 0.9 or 0.9,0.95"
    return tuple(sorted({_number(part, "--threshold", Range(), meaning) for part in text.split(",")}))


def _counts(text: str, option: str, allowed: Range, what: str) -> tuple[int, ...]:
    return tuple(_count(each, option, allowed, what) for each in text.split(","))


def _count(text: str, option: str, allowed: Range, what: str, otherwise: str = ",") -> int:
    if not re.fullmatch(r"[0-9]{1,20}", text) or not allowed.holds(int(text)):
        raise UserError(f"{option} must be {what} {allowed.words}{otherwise} not '{text}'.")
    return int(text)


def profiles(text: str) -> int:
    """Read a number of processes."""
    return _count(text, "--profiles", ranges.PROFILES, "a number of processes")


def taken_profiles(text: str) -> int:
    """Read a number of processes, at least one."""
    return _count(text, "--profiles", ranges.TAKEN_PROFILES, "a number of processes")


def delta(text: str) -> float:
    """Read a share between 0 and 1."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise UserError(f"--delta must be a number between 0 and 1, such as 0.02 for 2 %, not {text}.")
    return value


def share(text: str) -> float:
    """Read a share such as `5%` or `0.05`."""
    number, sign, rest = text.strip().partition("%")
    found = _number(number or "?", "--fail-if-slower", Range(0), "a share of at least 0, such as 5%")
    if rest:
        raise UserError(f"--fail-if-slower must be a share of at least 0, such as 5%, not '{text}'.")
    return found / 100 if sign else found


def day(text: str) -> "date":
    """Read the day of `--since`, such as `2026-11-01`."""
    return _day(text, "--since")


def accepted_day(text: str) -> "date":
    """Read the day of `--accept`, such as `2026-11-01`."""
    return _day(text, "--accept")


def _day(text: str, option: str) -> "date":
    from datetime import date

    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UserError(f"{option} must be a day such as 2026-11-01, not '{text}'.") from None


def place(text: str) -> str:
    """Return where to measure: `local`, `ray`, or the address of a cluster."""
    if text in ("local", "ray") or re.fullmatch(r"ray://[^\s/]+:\d{1,5}", text):
        return text
    raise UserError(f"--on must be local, ray or ray://HOST:PORT, not '{text}'.")


def fingerprint(text: str) -> str:
    """Return the fingerprint of `fingerprint=HEX`, or its beginning."""
    found = re.fullmatch(r"fingerprint=([0-9a-f]{1,16})", text)
    if not found:
        raise UserError(f"--nodes must be fingerprint=HEX, as steelyard nodes shows it, not '{text}'.")
    return found[1]


def node_count(text: str) -> int:
    """Read a number of nodes."""
    return _count(text, "--nodes", NODES, "a number of nodes")
