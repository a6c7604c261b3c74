"""Checks of imports and names in the syntax tree of the code; every finding is a sentence."""

from __future__ import annotations

import ast
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

# Top-level modules of deep-learning frameworks and of their parts.
FRAMEWORK_MODULES = frozenset(
    {
        "torch",
        "torchvision",
        "tensorflow",
        "keras",
        "jax",
        "jaxlib",
        "flax",
        "optax",
        "mindspore",
        "mxnet",
        "gluon",
        "horovod",
        "onnx",
        "onnxruntime",
        "tf2onnx",
    }
)


def imported(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, module) of every import in a source text, also inside functions; relative imports start with `.`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or "")
        elif isinstance(node, ast.Call) and _name_of(node.func) in ("import_module", "__import__"):
            constants = [each.value for each in node.args[:1] if isinstance(each, ast.Constant)]
            yield from ((node.lineno, text) for text in constants if isinstance(text, str))


def foreign_imports(path: Path, allowed: frozenset[str]) -> list[str]:
    """Return the imports of a file whose top-level module is not allowed; the standard library is always allowed."""
    found = []
    for line, module in imported(path.read_text(encoding="utf-8")):
        first = module.partition(".")[0]
        if first and first not in sys.stdlib_module_names and first not in allowed:
            found.append(f"{path}:{line} imports {module}")
    return found


def framework_imports(path: Path) -> list[str]:
    """Return the imports of deep-learning frameworks in a file."""
    modules = imported(path.read_text(encoding="utf-8"))
    return [
        f"{path}:{line} imports {module}" for line, module in modules if module.partition(".")[0] in FRAMEWORK_MODULES
    ]


def names_in_code(path: Path, names: frozenset[str]) -> list[str]:
    """Return a sentence for each use of one of the names as a word in identifiers and strings, except in docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    word = re.compile(rf"(?<![a-z0-9])({'|'.join(map(re.escape, sorted(names)))})(?![a-z0-9])")
    docstrings = {id(node) for node in _docstrings(tree)}
    found = []
    for node in ast.walk(tree):
        for text in () if id(node) in docstrings else _words(node):
            found += [
                f"{path}:{getattr(node, 'lineno', 1)} contains {match[1]}: {text[:60]!r}"
                for match in word.finditer(text.lower())
            ]
    return found


def _words(node: ast.AST) -> Iterator[str]:
    """Yield the identifiers, attributes, arguments and strings of a node."""
    for field in ("id", "attr", "name", "arg", "asname", "module", "value"):
        value = getattr(node, field, None)
        if isinstance(value, str):
            yield value


def _docstrings(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for each in node.body:
                # A string as a statement is a docstring, or the description below a field.
                if (
                    isinstance(each, ast.Expr)
                    and isinstance(each.value, ast.Constant)
                    and isinstance(each.value.value, str)
                ):
                    yield each.value


def _name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def names_imported(path: Path, line: int) -> set[str]:
    """Return the names that the `from ... import` statement of a line imports."""
    return {
        alias.name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.lineno == line
        for alias in node.names
    }


def modules_imported(path: Path, known: Collection[str]) -> set[str]:
    """Return those of the known modules that a file imports, also inside of functions and for type checking.

    Of `from package import name`, it is the module of that name, or the package where the name is no module.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {each if each in known else node.module for each in inside}
    return names & set(known)


def taken_from(source: str) -> dict[str, str]:
    """Return {name: module} of what a source text imports by name from modules of steelyard, also for type checking."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    return {
        alias.asname or alias.name: node.module
        for node in nodes
        if node.module and node.module.startswith("steelyard.")
        for alias in node.names
    }


def reached(package: Path, start: str) -> set[str]:
    """Return the files directly in a package that one of them uses, itself and further ones included; also inside functions.

    Imports for type checking do not count.
    """
    found, left = {start}, [start]
    while left:
        names = set()
        for node in _without_type_checking(ast.parse((package / left.pop()).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                module = node.module or ""
                whole = f"{package.name}.{module}".rstrip(".") if node.level else module
                names |= {whole, *(f"{whole}.{alias.name}" for alias in node.names)}
        parts = [name.split(".") for name in names if name.startswith(f"{package.name}.")]
        new = {f"{each[1]}.py" for each in parts if (package / f"{each[1]}.py").is_file()} - found
        found |= new
        left += new
    return found


def _without_type_checking(node: ast.AST) -> Iterator[ast.AST]:
    children = (
        node.orelse
        if isinstance(node, ast.If) and _name_of(node.test) == "TYPE_CHECKING"
        else ast.iter_child_nodes(node)
    )
    for child in children:
        yield child
        yield from _without_type_checking(child)
