"""The batch script of `steelyard slurm-script`: Ray on the nodes of an allocation, a study on them, and the end of Ray."""

import shlex
from collections.abc import Sequence
from pathlib import Path

TEMPLATE = Path(__file__).with_name("slurm.sh")


def script(study: Sequence[str], nodes: int, minutes: int, runs: str) -> str:
    """Return the script. `study`: arguments of `steelyard run`; `runs`: the folder for the record, which all nodes share."""
    values = {
        "@NODES@": str(nodes),
        "@TIME@": f"{minutes // 60:02}:{minutes % 60:02}:00",
        "@STUDY@": shlex.join(study),
        "@RUNS@": shlex.quote(runs),
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for mark, value in values.items():
        text = text.replace(mark, value)
    return text
