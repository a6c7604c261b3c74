"""Show a run in the README: six lines of its first table, a picture of its page, and when and where it was measured.

`python tools/picture.py RUN` takes the name of a run, or `latest`. The picture needs Chromium or Chrome.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image
from rich.console import Console

from steelyard import analysis, report
from steelyard.errors import UserError
from steelyard.files.paths import runs_folder
from steelyard.report import terminal
from steelyard.results import run_folders
from steelyard.wording import formatted

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.analysis.model import View

ROOT = Path(__file__).resolve().parents[1]
README, PICTURE = ROOT / "README.md", ROOT / "docs" / "page.png"
BEGIN, END = "<!-- example: begin -->", "<!-- example: end -->"
LINES = 6
WIDTH = 100  # columns of the terminal whose output is shown
PIXELS = (1280, 1400)
SHOWN_WIDTH = 960  # pixels of the stored picture; GitHub shows at most about 850
COLOURS = 96
MOST_BYTES = 150_000
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 90


def main(name: str) -> int:
    """Write the picture, then the example in the README; the exit code is 2 if the run or a browser is missing."""
    try:
        view = analysis.view(run_folders.find(runs_folder(), name))
        take_picture(view, PICTURE)
        text = README.read_text(encoding="utf-8")
        README.write_text(with_example(text, example(view)), encoding="utf-8")
    except (RuntimeError, UserError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def example(view: View) -> str:
    """Return the lines, the picture and the caption as Markdown."""
    lines = "\n".join(output_lines(view))
    picture = (
        f"![The page of this run: a verdict for each network, and a table with intervals]({PICTURE.relative_to(ROOT)})"
    )
    return f"```\n{lines}\n```\n\n{picture}\n\n{caption(view)}"


def output_lines(view: View) -> list[str]:
    """Return the first six lines of the first table that `steelyard run` prints. RuntimeError: the run has no table."""
    written = io.StringIO()
    terminal.print_view(Console(file=written, width=WIDTH, highlight=False), view)
    lines = [line.rstrip() for line in written.getvalue().splitlines()]
    start = next((number for number, line in enumerate(lines) if line.startswith("framework ")), None)
    if start is None:
        raise RuntimeError(f"{view.name} has no table of results. Name another run: make picture RUN=NAME")
    return lines[start : start + LINES]


def caption(view: View) -> str:
    """Return what was measured, when and where, and how many rounds other programs disturbed."""
    kept = [line for line in view.disturbances if line["kept"]]
    disturbed = sum(bool(line["reasons"]) for line in kept)
    where = formatted.machine({**view.record.host}) or "a machine that was not recorded"
    sentence = f"`{view.record.command}`, {formatted.moment(view.record.created)}: {where}."
    if disturbed:
        sentence += f" Other programs disturbed {disturbed} of its {len(kept)} rounds, which widens the intervals."
    return sentence


def with_example(text: str, shown: str) -> str:
    """Return the text of the README with another example. RuntimeError: it has no place for one."""
    marked = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    replaced, count = marked.subn(lambda _: f"{BEGIN}\n{shown}\n{END}", text)
    if count != 1:
        raise RuntimeError(f"The README needs the two marks {BEGIN} and {END} once.")
    return replaced


def take_picture(view: View, path: Path, screenshot: Callable[[Path, Path], None] | None = None) -> None:
    """Store a small picture of the top of a run's page. RuntimeError: no browser, or the picture is too large."""
    with tempfile.TemporaryDirectory() as folder:
        page = report.write(view, Path(folder) / "page.html")
        taken = Path(folder) / "page.png"
        (screenshot or photograph)(page, taken)
        small = reduced(taken, Path(folder) / "small.png")
        if (size := small.stat().st_size) > MOST_BYTES:
            raise RuntimeError(
                f"The picture has {size} bytes, more than {MOST_BYTES}. Use fewer colours or fewer pixels."
            )
        shutil.copyfile(small, path)


def photograph(page: Path, picture: Path) -> None:
    """Let a browser draw a page. RuntimeError: there is none, or it draws nothing."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise RuntimeError(f"There is no browser to draw the page. Install one of: {', '.join(BROWSERS)}.")
    command = [
        browser,
        "--headless=new",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--window-size={PIXELS[0]},{PIXELS[1]}",
    ]
    command += ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium has no sandbox for root
    with tempfile.TemporaryDirectory() as profile:
        command += [f"--user-data-dir={profile}", f"--screenshot={picture}", page.as_uri()]
        try:
            subprocess.run(command, capture_output=True, check=False, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{browser} did not draw the page within {SECONDS} s.") from None
    if not picture.exists():
        raise RuntimeError(f"{browser} drew no picture of the page.")


def reduced(picture: Path, into: Path) -> Path:
    """Write a picture with fewer pixels and colours; returns its path."""
    with Image.open(picture) as image:
        height = round(image.height * SHOWN_WIDTH / image.width)
        small = image.convert("RGB").resize((SHOWN_WIDTH, height), Image.Resampling.LANCZOS)
        colours = small.quantize(
            COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
        )  # keeps the few coloured marks
        colours.save(into, optimize=True)
    return into


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "latest"))
