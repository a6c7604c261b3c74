"""What decides the outcome of a test of real frameworks, as one hash: of files alone, so that no framework has to run.

A test declares it with the marker `decided`: a function from the test's parameters to `Sources`. The hash also has the test's own code,
the code of steelyard that it reaches, its parameters, and the lock files of its frameworks. Comments, docstrings and layout of Python code decide nothing.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.certificates.sources import NOT_COMPUTING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

ALL = ("*",)

# What these rooms and files do is the same for every framework: they record, summarise and show, choose machines, or call other
# rooms in order. Scripted frameworks test them in every run. They count only where a test's own file imports them.
SHOWING = (
    "cache",
    "cli",
    "cluster",
    "console",
    "feasibility",
    "host",
    "profiles",
    "published",
    "analysis",
    "report",
    "exports",
    "wording",
    "results",
    "stages",
    "version",
    "library",
    "statistics",
)

STUDIES = ("plan", "studies")

# What `steelyard certify` does until it has a certificate, for tests that start the command line.
CERTIFY = ("steelyard.certificates.certification", "steelyard.inputs.case_inputs", "steelyard.plan.resolve")
# What starts one process and reads what it recorded, and what `steelyard run` does with processes and ranks until there is a record.
LAUNCH = (*CERTIFY, "steelyard.measure.launch", "steelyard.measure.jobs")
RUN = (*LAUNCH, "steelyard.measure.rounds", "steelyard.measure.attempts", "steelyard.measure.communication")


@dataclass(frozen=True)
class Sources:
    """What decides a test besides its own code.

    `sample`: tests of one file with the same word are drawn together, because they share processes. `frameworks`, `workloads`: their
    names; `ALL` for every workload. `computing`: the worker's files count that decide what is computed, as in a certificate's
    key, and not those that time it. `modules`: what the test starts of steelyard in another process. `files`: further files,
    from the root of the repository. `values`: what else decides, such as a version.
    """

    sample: str
    frameworks: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    computing: bool = False
    modules: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    values: tuple[str, ...] = ()


def sources_of(item: pytest.Item) -> Sources | None:
    """Return what a test declares, or None: then it always runs."""
    mark = item.get_closest_marker("decided")
    if mark is None:
        return None
    by = mark.kwargs["by"]
    params = _params(item)
    found: Sources = by(**{name: params[name] for name in inspect.signature(by).parameters})
    return found


def key_of(item: pytest.Item, sources: Sources, root: Path) -> str:
    """Return the hash of everything that decides a test (20 hexadecimal digits)."""
    name = getattr(item, "originalname", item.name)
    # Weights and batches are drawn by NumPy in this process; its streams of random numbers stay the same within a feature release.
    drawn_by = version("numpy").rpartition(".")[0]
    params = {
        name: sorted(map(repr, value)) if isinstance(value, set) else repr(value)
        for name, value in _params(item).items()
    }
    parts = [item.nodeid, sorted(params.items()), sources.values, drawn_by, _of_files(root, item.path, name, sources)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:20]


@cache
def _of_files(root: Path, path: Path, name: str, sources: Sources) -> str:
    """Return the hash of the test's own code and of all files on which it rests."""
    own, imported = own_code(path, name)
    files = {*_worker_files(root, sources), *reached(root, path.parent, imported | {*sources.modules})}
    files |= {*_conftests(root, path), *_named_files(own, path.parent)}
    files |= {each for pattern in sources.files for each in _matching(root, pattern)}
    hashes = {each.relative_to(root).as_posix(): _hash(each) for each in files}
    return hashlib.sha256(json.dumps([own, sorted(hashes.items())]).encode()).hexdigest()


def forget() -> None:
    """Read all files again; within one run of pytest they do not change."""
    for each in (_of_files, own_code, reached, _imports, _beside, _named_files, _worker_files, _matching, _hash):
        each.cache_clear()


def _params(item: pytest.Item) -> dict[str, Any]:
    callspec = getattr(item, "callspec", None)
    return dict(callspec.params) if callspec else {}


@cache
def own_code(path: Path, name: str) -> tuple[str, frozenset[str]]:
    """Return the code of a test's file without other tests, comments and lists of parameters, and the modules that it imports.

    The parameters themselves are in the key.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [
        node
        for node in tree.body
        if not (isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and node.name != name)
    ]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            node.decorator_list = [each for each in node.decorator_list if ".parametrize(" not in ast.unparse(each)]
    return ast.unparse(tree), frozenset(_imported(tree))


@cache
def reached(root: Path, folder: Path, named: frozenset[str]) -> frozenset[Path]:
    """Return the files of these modules and of all that they import, and the data beside them, but nothing that only shows.

    Modules are looked for in `src`, `tests` and the test's own `folder`.
    """
    found = set[Path]()
    todo = [(module, True) for module in named]
    while todo:
        module, is_named = todo.pop()
        parts = module.split(".")
        if not is_named and parts[0] == "steelyard" and (parts[1:2] == [] or parts[1] in SHOWING):
            continue  # the package itself only names what it offers to programs
        for place in (root / "src", root / "tests", folder):
            path = _module_file(place, parts)
            if path and path not in found:
                found |= {path, *_beside(path.parent)} if place == root / "src" else {path}
                todo += [(each, False) for each in (*_imports(path), ".".join(parts[:-1])) if each]
    return frozenset(found)


def _module_file(place: Path, parts: list[str]) -> Path | None:
    path = place.joinpath(*parts)
    return next((each for each in (path / "__init__.py", path.with_name(f"{path.name}.py")) if each.is_file()), None)


@cache
def _imports(path: Path) -> frozenset[str]:
    return frozenset(_imported(ast.parse(path.read_text(encoding="utf-8"))))


def _imported(node: ast.AST) -> Iterator[str]:
    """Yield the names of all modules that code may import, also inside functions; not what only the type checker reads."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Import):
        yield from (each.name for each in node.names)
    if isinstance(node, ast.ImportFrom) and node.module:
        yield from (node.module, *(f"{node.module}.{each.name}" for each in node.names))
    for child in ast.iter_child_nodes(node):
        yield from _imported(child)


@cache
def _beside(folder: Path) -> frozenset[Path]:
    """Return the data in a folder of code, such as tables; studies only decide the tests that name them in `Sources.files`."""
    if folder.parts[-2:] == STUDIES:
        return frozenset()
    return frozenset(path for path in folder.iterdir() if path.is_file() and path.suffix not in (".py", ".pyc"))


@cache
def _named_files(code: str, folder: Path) -> frozenset[Path]:
    """Return the files beside a test that its code names, such as scripts for the interpreter of a framework."""
    words = {node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)}
    names = {word for word in words if isinstance(word, str) and word.endswith((".py", ".toml"))}
    return frozenset(path for name in names if (path := folder / name).is_file())


def _conftests(root: Path, path: Path) -> list[Path]:
    folders = [folder for folder in path.parents if folder.is_relative_to(root)]
    return [each for folder in folders if (each := folder / "conftest.py").is_file()]


@cache
def _worker_files(root: Path, sources: Sources) -> frozenset[Path]:
    """Return the files that run inside the environments of these frameworks, and their lock files."""
    worker = root / "src" / "steelyard_worker"
    if not sources.frameworks:
        return frozenset()
    every = {path.name for path in (worker / "frameworks").iterdir() if path.is_dir()}
    others = {f"{name}.py" for name in every - {*sources.frameworks}}
    found = {path for path in worker.glob("*.py") if not (sources.computing and path.name in NOT_COMPUTING)}
    found |= {*(worker / "frameworks").glob("*.py")}
    for name in sources.frameworks:
        found |= {*_matching(root, f"src/steelyard_worker/frameworks/{name}")}
        found |= {*(root / "src/steelyard/environments/locks").glob(f"{name}-*.txt")}
    for name in sources.workloads:
        found |= {each for each in _matching(root, f"src/steelyard_worker/workloads/{name}") if each.name not in others}
    return frozenset(found)


@cache
def _matching(root: Path, pattern: str) -> tuple[Path, ...]:
    """Return the files that match a pattern, and all files of a folder that does."""
    found = [path for match in root.glob(pattern) for path in (match.rglob("*") if match.is_dir() else [match])]
    return tuple(path for path in found if path.is_file() and "__pycache__" not in path.parts)


@cache
def _hash(path: Path) -> str:
    content = path.read_bytes()
    return hashlib.sha256(_code(content) if path.suffix == ".py" else content).hexdigest()


def _code(content: bytes) -> bytes:
    """Return Python code without comments, docstrings and layout, which decide nothing; as it is where it cannot be parsed."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return content
    return ast.unparse(_WithoutTexts().visit(tree)).encode()


class _WithoutTexts(ast.NodeTransformer):
    """Removes statements that are a text alone: docstrings of modules, classes, functions and attributes."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.body:
            node.body = [ast.Pass()]
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else node
