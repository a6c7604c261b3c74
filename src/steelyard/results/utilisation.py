"""How much of the machine the counted steps used: cores, GPU, energy."""

from steelyard.results import ranks
from steelyard.results.events import Block
from steelyard.results.trials import Trial

GPU = "GPU"
# The least counted time for which the energy of a process is given. It depends on the meter's updates: RAPL about every
# millisecond, so a thousand updates; GPUs about every 0.1 s, so a hundred. A reading may be one update old.
SHORTEST_S, SHORTEST_GPU_S = 1.0, 10.0


def busy_cores(trial: Trial, source: str) -> float | None:
    """Return how many cores the process kept busy, over all of its ranks; None if that was not recorded."""
    return ranks.total(trial, lambda one: busy_cores_of_rank(one, source))


def busy_cores_of_rank(trial: Trial, source: str) -> float | None:
    """Return how many cores one process kept busy, its CPU time over the elapsed time; None where it was not recorded.

    A thread that waits in a loop, as OpenMP's do for a while, counts as busy. Processes started by a framework do not count.
    """
    blocks = trial.counted(source)
    if not blocks or not all(block.cpu_ns for block in blocks):
        return None
    return sum(block.cpu_ns for block in blocks) / sum(block.elapsed_ns for block in blocks)


def gpu_share(trial: Trial, source: str) -> float | None:
    """Return the share of the time in which a kernel ran on the GPU, mean of the counted blocks; None where it is not known."""
    found = [block.gpu_percent for block in trial.counted(source) if block.gpu_percent is not None]
    return sum(found) / len(found) / 100 if found else None


def meters(trial: Trial) -> set[str] | None:
    """Return the names of the energy meters that were read; None for a record from before energy was measured."""
    found = [block.energy_uj for block in trial.blocks if block.energy_uj is not None]
    return set().union(*found) if found else None


def joules_per_step(trial: Trial, source: str) -> dict[str, float]:
    """Return the energy per step by meter, joules. Meters whose updates are too rare for the counted time are left out."""
    found = {}
    for name in sorted(meters(trial) or ()):
        blocks = [block for block in trial.counted(source) if name in (block.energy_uj or ())]
        if seconds(blocks) >= (SHORTEST_GPU_S if name == GPU else SHORTEST_S):
            energy = sum((block.energy_uj or {})[name] for block in blocks)
            found[name] = energy / 1e6 / sum(block.steps for block in blocks)
    return found


def seconds(blocks: list[Block]) -> float:
    """Return the total time of blocks."""
    return sum(block.elapsed_ns for block in blocks) / 1e9
