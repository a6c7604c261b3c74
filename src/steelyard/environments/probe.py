"""Run by the interpreter under examination (as `-c` text): says in one JSON line what it is and holds.

Standard library only, and plain enough for interpreters older than the oldest we accept, so that those
can be refused by their version and not by a syntax error.
"""

import json
import os
import sys


def installed() -> "dict[str, str]":
    """Every distribution on the path and its version; the first one found wins, as it does on import."""
    from importlib.metadata import distributions

    packages: dict[str, str] = {}
    for distribution in distributions():
        name = distribution.metadata["Name"]
        if name:
            packages.setdefault(name.lower().replace("_", "-"), distribution.version)
    return packages


def provider(module_name: str) -> str:
    """Name of the distribution that ships the module, or an empty string."""
    from importlib.metadata import packages_distributions

    names = packages_distributions().get(module_name) or [""]
    return names[0].lower().replace("_", "-")


def describe(module_name: str) -> "dict[str, object]":
    """Import the module and say what was found; an import that fails is a finding, too."""
    found: dict[str, object] = {
        "python_version": ".".join(str(part) for part in sys.version_info[:3]),
        "executable": sys.executable,
        "folders": [path for path in sys.path if path.rstrip(os.sep).endswith("-packages")],
    }
    if sys.version_info[:2] < (3, 10) or not module_name:
        return found
    found["packages"] = packages = installed()
    try:
        module = __import__(module_name)
    except BaseException as error:
        found["import_error"] = f"{type(error).__name__}: {error}"
        return found
    found["version"] = packages.get(provider(module_name)) or getattr(module, "__version__", "")
    return found


if __name__ == "__main__":
    answer = json.dumps(describe(sys.argv[1] if len(sys.argv) > 1 else ""))
    sys.stdout.write("\nSTEELYARD-PROBE " + answer + "\n")
    sys.stdout.flush()
    # Some frameworks hang or crash while they shut down; what was asked is answered by now.
    os._exit(0)
