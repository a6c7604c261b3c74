"""The order of the packages: which one may import which, and the imports that violate it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import source_rules

if TYPE_CHECKING:
    from pathlib import Path

# A package may import the packages before it in this list, and itself.
ORDER = (
    "version",
    "errors",
    "files",
    "host",
    "statistics",
    "wording",
    "published",
    "catalog",
    "plan",
    "results",
    "profiles",
    "analysis",
    "report",
    "exports",
    "console",
    "environments",
    "inputs",
    "measure",
    "certificates",
    "port",
    "cache",
    "cluster",
    "feasibility",
    "redone",
    "stages",
    "cli",
    "library",
    "__main__",
)
# A report shows what was recorded, so it must not depend on the current catalogue or machine.
RECORDED = {"version", "errors", "files", "statistics", "wording", "results", "profiles", "analysis"}
OF_ANALYSIS = ("analysis", "report")
# The modules of other packages that define what a record holds.
OF_RECORDS = {
    "steelyard.plan.run_plan",
    "steelyard.plan.protocols",
    "steelyard.published.gathering",
    "steelyard.published.study_tables",
    "steelyard.published.statements",
}

# Rooms whose cycles are known. Those of decisive rooms wait for the next edit, which makes tests of real frameworks run again.
CYCLES_LEFT = {
    "certificates": "the judgement of an update rule and its sentences describe each other",
    "inputs": "a source of data and the archives that it is read from name each other's types",
}


def allowed(name: str) -> set[str]:
    """Return the packages that a package may import."""
    if name in OF_ANALYSIS:
        return RECORDED | {name}
    if name == "exports":
        return RECORDED | {"report", name}
    return set(ORDER[: ORDER.index(name) + 1])


def violations(package: Path) -> list[str]:
    """Return a sentence for every import that violates the order, including imports for type checking."""
    found = []
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).parts[0].removesuffix(".py")
        if name == "__init__":
            continue
        for line, module in source_rules.imported(path.read_text(encoding="utf-8")):
            if name in OF_ANALYSIS and module in OF_RECORDS:
                continue
            wrong = sorted(_reached(module, path, line) - allowed(name))
            found += [f"{path.relative_to(package)}:{line} imports {other}" for other in wrong]
    return found


def _reached(module: str, path: Path, line: int) -> set[str]:
    """Return the packages that an import reaches; `from steelyard import x` reaches x."""
    first, _, rest = module.partition(".")
    if first != "steelyard":
        return set()
    if rest:
        return {rest.partition(".")[0]}
    return source_rules.names_imported(path, line) & set(ORDER)


def handed_on(package: Path) -> list[str]:
    """Return a sentence for every name that a module imports from a package which has it from another one."""
    taken = {name: source_rules.taken_from(path.read_text("utf-8")) for name, path in _modules(package).items()}
    return [
        f"{name} imports {each} from {module}, which has it from {origin}"
        for name, names in taken.items()
        for each, module in sorted(names.items())
        if (origin := taken.get(module, {}).get(each)) and origin.split(".")[1] != module.split(".")[1]
    ]


def import_cycles(package: Path) -> list[str]:
    """Return the import cycles among modules: also by imports inside of functions and for type checking."""
    modules = _modules(package)
    edges = {name: source_rules.modules_imported(path, modules.keys()) - {name} for name, path in modules.items()}
    found, done = [], set[str]()

    def visit(name: str, trail: list[str]) -> None:
        if name in trail:
            found.append(" -> ".join([*trail[trail.index(name) :], name]))
            return
        if name in done:
            return
        for target in sorted(edges[name]):
            visit(target, [*trail, name])
        done.add(name)

    for name in sorted(edges):
        visit(name, [])
    return found


def room_of(cycle: str) -> str:
    """Return the package in which a cycle begins."""
    return cycle.split(" -> ")[0].split(".")[1]


def _modules(package: Path) -> dict[str, Path]:
    paths = package.rglob("*.py")
    return {
        ".".join((package.name, *path.relative_to(package).with_suffix("").parts)).removesuffix(".__init__"): path
        for path in paths
    }
