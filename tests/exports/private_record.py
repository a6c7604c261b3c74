"""Records with private names in all of their files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def change(path: Path, edit: Callable[[Any], Any]) -> None:
    path.write_text(json.dumps(edit(json.loads(path.read_text()))))


def planted(folder: Path, user: str, host: str, node: str, word: str) -> None:
    """Write private names into every kind of file of a record, as steelyard and frameworks write them."""
    home = f"/home/{user}/pro jects"
    mount = f"/mnt/{word}/data"

    def run(known: dict[str, Any]) -> dict[str, Any]:
        known["command"] = (
            f"steelyard run -f fake --data {mount} --env 'fake=/opt/{word}/python' --workloads ../{word}/x"
        )
        known["plan"]["options"] |= {
            "data": mount,
            "external": {"fake": f"{word}/python"},
            "study": f"{word}/study.toml",
        }
        known["plan"]["options"]["workload_folders"] = [home]
        known["plan"]["workload_folders"] = {"line": f"{home}/line"}
        known["environments"]["fake"]["python"] = f"{home}/bin/python"
        known["host"]["unknown"] = {"gpus": f"{user}@{host}: /dev/{word} is missing"}
        known["inputs"]["line:small"]["origin"] = f"digits of {mount}/digits, by {user.upper()}."
        return known | {
            "nodes": [node],
            "left_out": [f"{node}.lan is busy: {user} measures (10.1.2.3)"],
            "allowed": word,
        }

    change(folder / "run.json", run)
    lines = [
        {
            "group": "line:small",
            "round": 1,
            "attempt": 0,
            "kept": True,
            "severity": 0.0,
            "host_noise": {},
            "node": node,
            "beside": [node],
            "reasons": [f"{user}'s program {home}/x.py took 2 cores"],
        }
    ]
    (folder / "rounds.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    change(
        folder / "certificates.json",
        lambda known: {key: value | {"imported": {f"{home}/x.py": "ab"}} for key, value in known.items()},
    )
    for trial in sorted((folder / "trials").iterdir())[:2]:
        change(
            trial / "job.json",
            lambda job: (
                job
                | {
                    "folder": f"{home}/t",
                    "node": node,
                    "variables": {"TOKEN": word},
                    "data": job["data"] | {"prepared": mount},
                }
            ),
        )
        warning = {
            "v": 2,
            "event": "warning",
            "t_ns": 1,
            "name": "x",
            "message": f'File "{home}/a.py", line 3: see http://{host}:80/',
        }
        with (trial / "events.jsonl").open("a") as file:
            file.write(f"{json.dumps(warning)}\n")
        (trial / "output.log").write_text(f"{user}@{host}:{mount}$ python\n")
    (folder / "notes.txt").write_text(f"{user} {host} {word}")
    (folder / "trials" / f"{word}.txt").write_text(word)


def forms(word: str) -> set[bytes]:
    return {word.encode(), word.upper().encode(), json.dumps(word)[1:-1].encode()}
