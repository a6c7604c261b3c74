"""Processes of sides that are forked from one that has imported their libraries."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from steelyard.ports import side_process

SERVER = Path(__file__).parent / "warm.py"
IMPORTS = {
    "pytorch": ("torch", "torch.utils.data", "torch._dynamo"),
    "transformers": ("torch", "transformers.models.bert.modeling_bert", "transformers.models.gpt2.modeling_gpt2"),
    "torchvision": ("warm_torchvision", "torch.utils.data", "torch._dynamo"),
    "jax": ("jax", "flax.linen", "transformers.modeling_flax_utils", "transformers.models.bert.modeling_flax_bert"),
    "tensorflow": ("keras", "tensorflow"),
}
"""Environment -> what is imported before the forks. None of it starts threads."""
SETTINGS = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
_servers: dict[Path, subprocess.Popen] = {}


class WarmSide(side_process.SideProcess):
    """A side in a fork. Its number is not that of a child of this process, so only signals reach it."""

    def __init__(self, name, python, file, folder, limit_s):
        self.name, self._folder, self._limit_s = name, folder, limit_s
        folder.mkdir(parents=True, exist_ok=True)
        self._log = (folder / side_process.LOG).open("wb")
        self._requests = 0
        self._process = _Fork(_server(python), file, folder)


class _Fork:
    """What a SideProcess needs of a process."""

    def __init__(self, server, file, folder):
        pipes = [folder / "requests", folder / "answers"]
        for pipe in pipes:
            os.mkfifo(pipe)
        request = {"program": str(side_process.PROGRAM), "file": str(file), "log": str(folder / side_process.LOG)}
        request |= {"requests": str(pipes[0]), "answers": str(pipes[1])}
        server.stdin.write(json.dumps(request).encode() + b"\n")
        server.stdin.flush()
        self.pid = int(server.stdout.readline())
        self.stdin = pipes[0].open("wb")
        self.stdout = pipes[1].open("rb", buffering=0)

    def wait(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        return -signal.SIGKILL


def _server(python):
    if python not in _servers:
        environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        cache = {"JAX_COMPILATION_CACHE_DIR": str(Path(python).parents[1] / "compiled")}
        _servers[python] = subprocess.Popen(
            [str(python), str(SERVER), *IMPORTS[Path(python).parents[1].name]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sys.stderr,
            env=environ | SETTINGS | cache,
        )
    return _servers[python]
