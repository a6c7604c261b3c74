"""Many runs as one static website: a page that puts them side by side, and the page of every run."""

from __future__ import annotations

import html
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from markupsafe import escape

from steelyard import analysis
from steelyard.analysis import gallery as rows_of
from steelyard.errors import UserError
from steelyard.exports import bundle, run_sources, writing
from steelyard.files import atomic, within
from steelyard.report import page, privacy, small_page
from steelyard.report.sections import gallery as section

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.analysis.gallery import Entry
    from steelyard.results.identity import HeldRun

COPY = ".copy"
INDEX, PAGES, ENDING = "index.html", "runs", ".html"
LONGEST = 60
"""Letters of a run's name in the name of its page."""
NAME = re.compile(r"[a-z0-9][a-z0-9._-]*\.html")
OF_A_GALLERY = f'<p class="mark">steelyard <span>{section.MARK}</span></p>'


@dataclass
class Site:
    """A website. `pages`: name of a run -> its page; `folders`: name of a run -> the folder that it was read from.

    `copies`, `left_out`: a sentence for each folder that has no page; `not_hidden`: private words that are names in records.
    """

    folder: Path
    pages: dict[str, Path] = field(default_factory=dict)
    folders: dict[str, Path] = field(default_factory=dict)
    copies: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    not_hidden: set[str] = field(default_factory=set)

    @property
    def index(self) -> Path:
        """The start page."""
        return self.folder / INDEX


def write(folders: Iterable[Path], target: Path, hide: Iterable[str] = ()) -> Site:
    """Write the website of all runs and bundles in some folders. `hide`: further private words.

    Every run is copied without what is private first, as for a bundle, and shown from this copy. Pages of an earlier website at
    the same place are replaced, and those of runs that are not among these any more are removed.
    UserError: there is no run, or the place is inside one, holds something else or cannot be written.
    """
    sources, hidden = run_sources.of_folders(folders), tuple(hide)
    site = Site(target.expanduser().absolute(), copies=sources.copies, left_out=sources.left_out)
    for run in sources.runs:
        writing.check_outside(site.folder, run.folder)
    try:
        old = _pages_of(site.folder)
        site.folder.mkdir(parents=True, exist_ok=True)
        within.make(site.folder, site.folder / PAGES)
        rows = [row for run in sources.runs for row in _shown(run, site, hidden)]
        if not rows and not site.pages:
            raise UserError(f"No run can be shown, so no site was written. {' '.join(site.left_out)}")
        addresses = {name: f"{PAGES}/{path.name}" for name, path in site.pages.items()}
        atomic.write_text(site.index, small_page.render(section.page(rows_of.gallery(rows), addresses)))
        for path in old - {*site.pages.values()}:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(
            f"{error.filename or site.folder} cannot be written ({error.strerror}). Name another folder with -o."
        ) from None
    return site


def _pages_of(folder: Path) -> set[Path]:
    """Return the pages of an earlier gallery in a folder. UserError: the folder holds something else."""
    if not folder.exists():
        return set()
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder. Name another one with -o.")
    other = [path for path in folder.iterdir() if path.name not in (INDEX, PAGES)]
    within.check_file(folder / INDEX)
    if (folder / INDEX).exists() and OF_A_GALLERY not in (folder / INDEX).read_text("utf-8", "replace"):
        other.append(folder / INDEX)
    within.check(folder, folder / PAGES / INDEX)
    pages = set((folder / PAGES).iterdir()) if (folder / PAGES).exists() else set[Path]()
    other += [path for path in pages if not NAME.fullmatch(path.name) or path.is_symlink() or not path.is_file()]
    if other:
        raise UserError(f"{min(other)} is of no gallery, so nothing was written. Name a new or empty folder with -o.")
    return pages


def _shown(run: HeldRun, site: Site, hide: Iterable[str]) -> list[Entry]:
    """Write the page of a run and return its rows; none where it cannot be shown."""
    try:
        with TemporaryDirectory(prefix="steelyard-") as scratch:
            return _written(run, Path(scratch).resolve(), site, hide)
    except UserError as error:
        site.left_out.append(f"{run.folder} was left out: {error}")
        return []


def _written(run: HeldRun, scratch: Path, site: Site, hide: Iterable[str]) -> list[Entry]:
    done = bundle.copy(run.folder, scratch / COPY, hide)
    name = _unique(done.name, run, site)
    view = analysis.view((scratch / COPY).rename(scratch / name))  # sentences name the folder
    path = site.folder / PAGES / _file_name(name, run, {each.name for each in site.pages.values()})
    atomic.write_text(path, _without_place(page.render(view), scratch))
    site.pages[name], site.folders[name] = path, run.folder
    site.not_hidden.update(done.not_hidden)
    return rows_of.entries(view)


def _unique(name: str, run: HeldRun, site: Site) -> str:
    """Return the name of a run, with a part of its identity where another run has the same."""
    names = (name, f"{name}{run.suffix}", *(f"{name}{run.suffix}-{number}" for number in range(2, len(site.pages) + 3)))
    return next(each for each in names if each not in site.pages)


def _file_name(name: str, run: HeldRun, taken: set[str]) -> str:
    """Return the name of a run's page, which stays the same when other runs are added, and leads nowhere else."""
    plain = re.sub(r"[^a-z0-9._-]+", "-", name.lower().removesuffix(run.suffix))[:LONGEST].strip(".-") or "run"
    stem = f"{plain}{run.suffix}"
    numbered = (stem, *(f"{stem}-{number}" for number in range(2, len(taken) + 3)))
    return next(f"{each}{ENDING}" for each in numbered if f"{each}{ENDING}" not in taken)


def _without_place(text: str, scratch: Path) -> str:
    """Return a page on which a run does not lie in the folder of its copy, as nobody would find that."""
    place = privacy.without_names(str(scratch))
    for each in (shlex.quote(place), place):
        for part in (f" --runs {each}", f"{each}/"):
            for written in (html.escape(part), str(escape(part))):  # templates and marked terms escape quotes otherwise
                text = text.replace(written, "")
    return text
