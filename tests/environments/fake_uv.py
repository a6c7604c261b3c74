"""A stand-in for uv: creates real, empty virtual environments and writes a tiny framework into them.

The file `behaviour` next to it says what to do wrong; its calls are recorded in `calls`.
"""

import base64
import hashlib
import os
import sys
import time
import venv
from pathlib import Path

HERE = Path(__file__).parent


def site_of(python: str) -> Path:
    """The package folder of an environment that this stand-in created."""
    return next(Path(python).parents[1].glob("lib/python*/site-packages"))


def record_line(name: str, content: bytes) -> str:
    """One line of a RECORD file, as the wheel format has it."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def write_package(site: Path, version: str, body: str) -> None:
    """Write the distribution `tiny-framework` with the module `tinyframework`."""
    info = f"tiny_framework-{version}.dist-info"
    files = {
        "tinyframework/__init__.py": body.encode(),
        "tinyframework/kernels.py": b"# not imported by the package itself\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tiny-framework\nVersion: {version}\n".encode(),
        f"{info}/top_level.txt": b"tinyframework\n",
    }
    record = ""
    for name, content in files.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        record += record_line(name, content)
    (site / info / "RECORD").write_text(record + f"{info}/RECORD,,\n", "utf-8")


def damage(path: Path) -> None:
    """Change a file at equal length. Its age is that of a file in uv's cache."""
    path.write_bytes(path.read_bytes().upper())
    os.utime(path, (0, 0))


def install(arguments: list[str], behaviour: str) -> None:
    """Fill the environment, or fail in the way that `behaviour` names."""
    if behaviour.startswith("prints:"):
        sys.stderr.write(behaviour.removeprefix("prints:"))
        sys.exit(1)
    if behaviour == "killed":
        os.kill(os.getpid(), 9)
    if behaviour in ("slow", "hangs"):
        time.sleep(2 if behaviour == "slow" else 600)
    if "--dry-run" in arguments:
        sys.exit(0 if behaviour == "has the small build" else 1)
    version = "9.9.9" if behaviour == "wrong version" else "1.2.3"
    body = "raise ImportError('libtiny.so: cannot open shared object file')" if behaviour == "broken" else ""
    body = "import time; time.sleep(600)" if behaviour == "import hangs" else body
    print("Downloading tiny-framework (2.0MiB)\n Downloaded tiny-framework\nPrepared 1 package in 3ms")
    where = Path(arguments[arguments.index("--target") + 1]) if "--target" in arguments else None
    site = where or site_of(arguments[arguments.index("--python") + 1])
    if (HERE / "pip.py").exists() and any(each.startswith("pip==") for each in arguments):
        (site / "pip").mkdir()
        (site / "pip" / "__main__.py").write_text((HERE / "pip.py").read_text())
        return
    write_package(site, version, body)
    if behaviour == "damaged":
        damage(site / "tinyframework" / "kernels.py")
    if behaviour == "incomplete":
        (site / "tinyframework" / "kernels.py").unlink()


def main() -> None:
    """Do what uv would do."""
    arguments = sys.argv[1:]
    with (HERE / "calls").open("a") as stream:
        stream.write(" ".join(arguments) + "\n")
    behaviour = (HERE / "behaviour").read_text() if (HERE / "behaviour").exists() else ""
    if arguments[0] == "venv":
        venv.create(arguments[-1], symlinks=True)
    elif arguments[:2] == ["pip", "install"]:
        install(arguments, behaviour)


if __name__ == "__main__":
    main()
