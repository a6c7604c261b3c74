"""Draw the pictures of docs/reading-a-page.md: the tops of pages of two runs of the golden set, whose contenders are scripted.

`python tools/reading_pictures.py` needs Chromium or Chrome. Nothing is measured.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

import picture
from PIL import Image

from steelyard import analysis, report

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "tests" / "golden" / "runs"

# Kind of run -> the picture, and the part of the page that it shows: the first and the last pixel from the top.
PICTURES = {"training": ("reading-decided.png", 0, 1115), "close": ("reading-undecided.png", 265, 880)}
COLOURS = 256


def main() -> int:
    """Write all pictures into docs/; the exit code is 2 if there is no browser."""
    try:
        for kind, part in PICTURES.items():
            draw(kind, *part)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def draw(kind: str, name: str, first: int, last: int) -> None:
    """Write the picture of one recorded run. RuntimeError: there is no browser, or the picture is too large."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(RECORDED / f"{kind}.tar.xz") as archive:
            archive.extractall(folder, filter="data")
        runs = Path(folder) / "runs"
        page = report.write(analysis.view(runs / kind), Path(folder) / "page.html")
        # Commands on the page name the temporary folder, which is of no use to a reader.
        page.write_text(page.read_text(encoding="utf-8").replace(f" --runs {runs}", ""), encoding="utf-8")
        taken = Path(folder) / "page.png"
        picture.photograph(page, taken)
        with Image.open(taken) as image:
            part = image.convert("RGB").crop((0, first, image.width, last))
    size = (picture.SHOWN_WIDTH, round(part.height * picture.SHOWN_WIDTH / part.width))
    path = ROOT / "docs" / name
    small = part.resize(size, Image.Resampling.LANCZOS)
    small.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)
    if path.stat().st_size > picture.MOST_BYTES:
        raise RuntimeError(
            f"{path.name} has more than {picture.MOST_BYTES} bytes. Use fewer colours or a smaller part."
        )


if __name__ == "__main__":
    sys.exit(main())
