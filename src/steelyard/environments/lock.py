"""Lock files: one framework at one version for one accelerator, every package pinned.

A lock file is a requirements file that starts with facts in comment lines, `# key = value`. The framework's
name, import name and vendor are data in it, so that no code names them. The pins come from
`uv pip compile --universal --no-annotate --no-header`, so one file is valid for every Python in its range.
"""

from dataclasses import dataclass
from pathlib import Path

LOCKS = Path(__file__).parent / "locks"


@dataclass(frozen=True)
class Lock:
    """One lock file. `pins` are requirement lines; `facts` are the header's keys and values.

    `import_name` is the module that must import in a working environment. The version of `distribution` is the framework's.
    """

    stem: str
    text: str
    facts: dict[str, str]
    pins: tuple[str, ...]
    framework: str
    version: str
    accelerator: str
    import_name: str
    distribution: str

    @property
    def pythons(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The oldest and the newest Python (major, minor) with wheels for every pin."""
        oldest, newest = self.facts["python"].split(" to ")
        return python_pair(oldest), python_pair(newest)

    @property
    def installed_bytes(self) -> int:
        """The approximate disk space of the environment; 0 when it was not measured."""
        return int(self.facts.get("installed mb", "0")) * 1_000_000

    @property
    def untested(self) -> str:
        """Why this lock has never been run; empty when it has been."""
        return self.facts.get("untested", "")


def python_pair(version: str) -> tuple[int, int]:
    """`'3.11.7'` -> `(3, 11)`."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def version_order(version: str) -> tuple[int, ...]:
    """Return a sort key for release numbers; a local part such as `+cpu` is ignored."""
    parts = version.partition("+")[0].split(".")
    return tuple(int(part) if part.isdigit() else 0 for part in parts)


def parse_lock(stem: str, text: str) -> Lock:
    """Read a lock file's text. Raises `ValueError` with the file and the key that is missing."""
    facts: dict[str, str] = {}
    pins: list[str] = []
    for line in text.splitlines():
        if line.startswith("#"):
            key, equals, value = line[1:].partition(" = ")
            if equals:
                facts[key.strip()] = value.strip()
        elif line.strip():
            pins.append(line.strip())
    for key in ("framework", "version", "accelerator", "import", "distribution", "python"):
        if key not in facts:
            raise ValueError(f"the header of lock file {stem}.txt lacks '{key}'")
    return Lock(
        stem,
        text,
        facts,
        tuple(pins),
        framework=facts["framework"],
        version=facts["version"],
        accelerator=facts["accelerator"],
        import_name=facts["import"],
        distribution=facts["distribution"],
    )


def read_locks(folder: Path = LOCKS) -> list[Lock]:
    """Return all lock files of a folder, by framework, newest version first."""
    locks = [parse_lock(path.stem, path.read_text("utf-8")) for path in sorted(folder.glob("*.txt"))]
    # A version with a local part, such as `+onnx`, holds more packages than the plain one, which comes first.
    newest_first = sorted(locks, key=lambda lock: (version_order(lock.version), "+" not in lock.version), reverse=True)
    return sorted(newest_first, key=lambda lock: (lock.framework, lock.accelerator != "cpu"))


def large_build(lock: Lock) -> Lock:
    """Return the lock to use when the vendor's small build named in `lock` is not available."""
    stem = lock.facts["otherwise"].removesuffix(".txt")
    return parse_lock(stem, (LOCKS / f"{stem}.txt").read_text("utf-8"))
