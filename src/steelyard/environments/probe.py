"""Run by the interpreter that is inspected (as `-c` text): prints its version and packages as one line of JSON.

Standard library only. The syntax also works in interpreters that are too old for steelyard, so that those
are refused for their version and not for a syntax error.
"""

import json
import os
import sys


def installed() -> "dict[str, str]":
    """Return every distribution on the path with its version; the first one found wins, as on import."""
    from importlib.metadata import distributions

    packages: dict[str, str] = {}
    for distribution in distributions():
        name = distribution.metadata["Name"]
        if name:
            packages.setdefault(name.lower().replace("_", "-"), distribution.version)
    return packages


def provider(module_name: str) -> str:
    """Return the distribution that contains the module, or an empty string."""
    from importlib.metadata import packages_distributions

    names = packages_distributions().get(module_name) or [""]
    return names[0].lower().replace("_", "-")


def describe(module_name: str) -> "dict[str, object]":
    """Import the module and return what was found, a failed import included."""
    found: dict[str, object] = {
        "python_version": ".".join(str(part) for part in sys.version_info[:3]),
        "folders": [path for path in sys.path if os.access(path, os.R_OK)],
    }
    if sys.version_info[:2] < (3, 10) or not module_name:
        return found
    found["packages"] = packages = installed()
    try:
        module = __import__(module_name)
    except BaseException as error:
        found["import_error"] = f"{type(error).__name__}: {error}"
        return found
    # An import hook can find the module outside of the folders on the path.
    found["module_folders"] = list(getattr(module, "__path__", ()))
    found["version"] = packages.get(provider(module_name)) or getattr(module, "__version__", "")
    return found


if __name__ == "__main__":
    line = json.dumps(describe(sys.argv[1] if len(sys.argv) > 1 else ""))
    sys.stdout.write("\nSTEELYARD-PROBE " + line + "\n")
    sys.stdout.flush()
    # Some frameworks hang or crash at exit; the result is already written.
    os._exit(0)
