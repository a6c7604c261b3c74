"""The project's files outside its code: licence, citation, and links without missing targets."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tomllib

from steelyard import __version__
from steelyard.certificates import method
from steelyard_worker.protocol import METHOD

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# The text of https://www.apache.org/licenses/LICENSE-2.0.txt without its first, empty line.
APACHE_2 = "c71d239df91726fc519c6eb72d318ec65820627232b2f796219e87dcf35d0ab4"


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def broken_links(page: Path, within: Path) -> list[str]:
    """Return the relative links of a page whose target is missing or outside a folder."""
    found = []
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        path = (page.parent / target.partition("#")[0]).resolve()
        if "://" not in target and not target.startswith("#") and not (path.exists() and path.is_relative_to(within)):
            found.append(f"{page.name}: {target}")
    return found


def test_the_licence_is_unchanged_and_named_in_the_metadata() -> None:
    assert project()["license"] == "Apache-2.0"
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE_2


def test_the_version_is_the_same_everywhere() -> None:
    cited = re.search(r'^version: "(.+)"$', (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited
    assert project()["version"] == cited[1] == __version__


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "benchmarks/README.md",
        "tests/README.md",
        "tests/certificates/README.md",
    ],
)
def test_links_of_the_projects_files_have_targets(name: str) -> None:
    assert broken_links(ROOT / name, ROOT) == []


def test_links_of_the_documentation_stay_in_the_documentation() -> None:
    # A link out of docs/ works in the repository, but not on the website.
    assert [link for page in sorted(DOCS.rglob("*.md")) for link in broken_links(page, DOCS)] == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    (tmp_path / "outside.md").touch()
    page.write_text("[a](missing.md) [b](../outside.md) [c](page.md#part) [d](#part) [e](https://example.org)")
    assert broken_links(page, page.parent) == ["page.md: missing.md", "page.md: ../outside.md"]
    assert broken_links(page, tmp_path) == ["page.md: missing.md"]


def test_every_page_of_the_documentation_is_in_the_navigation() -> None:
    listed = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    assert pages <= set(listed)


def rows_of(heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading of the measurement history."""
    page = (DOCS / "measurement-history.md").read_text(encoding="utf-8")
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if re.match(r"\| \d", line)]
    return [[cell.strip() for cell in line.strip("|").split(" |")] for line in lines]


def test_every_method_of_measuring_has_one_row_in_the_history() -> None:
    rows = rows_of("Methods of measuring")
    assert [int(row[0]) for row in rows] == list(range(METHOD, 0, -1))
    assert all(len(row) == 4 and row[1] and row[2] for row in rows)


def test_the_newest_method_of_certificates_has_a_row_in_the_history() -> None:
    versions = [int(row[0]) for row in rows_of("Methods of certificates")]
    assert versions[0] == method.VERSION
    assert versions == sorted(set(versions), reverse=True)


def test_the_readme_and_the_changelog_stay_short() -> None:
    readme, changelog = (
        (ROOT / name).read_text(encoding="utf-8").splitlines() for name in ("README.md", "CHANGELOG.md")
    )
    assert len(readme) <= 120
    assert len(changelog) <= 80
    assert max(map(len, changelog)) <= 250


def test_the_pictures_of_pages_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in DOCS.glob("*.png")}
    assert "page.png" in sizes
    assert {name: size for name, size in sizes.items() if not 20_000 < size < 150_000} == {}


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_tests_keep_compiled_code_whatever_the_shell_says() -> None:
    shown = ["make", "--silent", '--eval=shown: ; @echo "[$$PYTHONDONTWRITEBYTECODE]"', "shown"]
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(shown, cwd=ROOT, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
