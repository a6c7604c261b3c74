"""Runs in the interpreter of a side: imports its libraries once, then forks the process of each side, which saves most of a check.

Each line of standard input names the worker's program, a side's file, two pipes and a log. For each the number of the process is
printed.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import sys
from pathlib import Path


def main(modules: list[str]) -> None:
    """Fork until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for name in modules:
        importlib.import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            serve(request)
        print(child, file=answers, flush=True)


def serve(request: dict[str, str]) -> None:
    """Become the process of a side."""
    os.setsid()
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT)
    os.dup2(os.open(request["requests"], os.O_RDONLY), 0)
    os.dup2(os.open(request["answers"], os.O_WRONLY), 1)
    os.dup2(log, 2)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    os.chdir(Path(request["file"]).parent)
    sys.argv = [request["program"], request["file"]]
    try:
        runpy.run_path(request["program"], run_name="__main__")
    finally:
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
