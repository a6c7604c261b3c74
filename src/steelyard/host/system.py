"""Reading small system files and the output of system programs; what is missing reads as an empty text."""

import shutil
import subprocess
from pathlib import Path

TIMEOUT_S = 10.0


def read(path: Path) -> str:
    """Return a file's text, or an empty text if it cannot be read."""
    try:
        # `open` costs half of what `Path.read_text` does, and the sampler reads many files every second.
        with open(path, encoding="utf-8", errors="replace") as stream:  # noqa: PTH123
            return stream.read()
    except OSError:
        return ""


def output_of(program: str, *arguments: str) -> str:
    """Return what a program prints, or an empty text if it is missing, fails or takes longer than 10 s."""
    path = shutil.which(program)
    if not path:
        return ""
    try:
        done = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
