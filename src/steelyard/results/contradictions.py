"""Whether the record of a trial contradicts itself: bytes, CPU times and clocks that cannot all be true of the same steps.

Nothing here depends on how fast a machine is or how busy: a busy machine makes steps long, and never more CPU time than its cores
have, nor a later time than the present. A trial without these values is not checked.
"""

from collections.abc import Callable, Iterable, Sequence

from steelyard.results.events import Block, Watched
from steelyard.results.trials import Trial
from steelyard_worker.strategy import Spread

CERTIFIED_STEPS = 5
"""A certificate compares the losses of this many first steps, so their exchange was that of a correct training."""
SHARE = 0.5
"""Steps that exchange the same gradients carry about the same bytes. Less than this share is a contradiction."""
MATTERS_BYTES = 10_000
"""Below this number of bytes per step, messages that only coordinate the ranks may be most of them."""
CORES_SLACK, SLACK_NS = 1.05, 50_000_000
"""CPU time and elapsed time are read one after the other, and a kernel may count in ticks of 10 ms."""
HELPERS = 1
"""In addition to the computing threads, Python's own thread is busy if a framework returns before the work is done: it prepares
the next step."""
CLOCK_NS, CLOCK_SHARE = 500_000_000, 0.05
"""The delay of a slow clock grows. The delay of a correct clock is the time to read losses and write a line."""
LAST_BLOCKS = 3
"""A single block may be written late because its process stood still; with a slow clock, all of the last blocks are late."""


def contradiction(trial: Trial) -> str:
    """Return a sentence about the first contradiction in a record; empty where there is none."""
    found = (_of_bytes(trial), _of_clocks(trial), _of_cpu_time(trial))
    return next(filter(None, found), "")


def _of_bytes(trial: Trial) -> str:
    """Compare the bytes of the counted steps with those of the first steps, whose losses were compared with the certificate."""
    spread = trial.job.spread
    if spread is None or not _alike(spread, trial):
        return ""
    first = _first_steps(trial.blocks)
    counted = [block for block in trial.blocks if block.phase == "counted" and block not in first]
    for what, of in CARRIED.items():
        if not counted or any(of(block) is None for block in trial.blocks):
            continue
        usual = sum(of(block) or 0 for block in first) / sum(block.steps for block in first)
        least = min(counted, key=lambda block: _per_step(of(block), block))
        if usual >= MATTERS_BYTES and _per_step(of(least), least) < SHARE * usual:
            return (
                f"The first rank {what} {usual:,.0f} bytes per step at the beginning, where losses are compared with the "
                f"certificate, but {_per_step(of(least), least):,.0f} in the counted steps from step {least.first_step + 1} on. "
                "Its ranks no longer exchange what they did."
            )
    return ""


def _sent(block: Block) -> int | None:
    return block.sent_bytes


def _received(block: Block) -> int | None:
    return block.received_bytes


def _per_step(carried: int | None, block: Block) -> float:
    return (carried or 0) / block.steps


CARRIED: dict[str, Callable[[Block], int | None]] = {"sent": _sent, "received": _received}


def _alike(spread: Spread, trial: Trial) -> bool:
    """Return whether every step of a strategy carries the same. Parts of a network exchange activations, as long as the batch.

    Ranks that do not wait exchange something every few steps, in some blocks and not in others, or their messages may be on their
    way when a block ends.
    """
    cut = trial.job.case.cuts_batches and spread.shares == "network"
    return spread.does.connects and spread.does.waits and not cut


def _first_steps(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks with the certified steps, without the very first step where others follow.

    The first step also exchanges what ranks send once, such as the weights.
    """
    until = [block for block in blocks if block.first_step < CERTIFIED_STEPS]
    return until[1:] or until


def _of_clocks(trial: Trial) -> str:
    seen = trial.watched
    if seen is None or not trial.blocks:
        return ""
    span_ns = seen.ended_ns - seen.spawned_ns
    late_ns = max(CLOCK_NS, round(CLOCK_SHARE * span_ns))
    if seen.behind_ns > late_ns:
        return (
            f"The clock of the process was {seen.behind_ns / 1e9:.1f} s behind that of steelyard when it ended, after "
            f"{span_ns / 1e9:.1f} s. Its times are not those that have passed."
        )
    if (behind_ns := _growing_ns(trial.blocks)) > late_ns:
        return (
            f"The clock that timed the steps fell {behind_ns / 1e9:.1f} s behind the clock of the events in "
            f"{span_ns / 1e9:.1f} s. Its times are not those that have passed."
        )
    return _of_life(trial.blocks, seen)


def _growing_ns(blocks: Sequence[Block]) -> int:
    """Return by how much the delay between the end of a block and its record grew over the trial, nanoseconds."""
    late = [block.t_ns - block.start_ns - block.elapsed_ns for block in blocks]
    first, last = late[:2], late[2:][-LAST_BLOCKS:]
    return min(last) - max(first) if last and all(block.t_ns for block in blocks) else 0


def _of_life(blocks: Iterable[Block], seen: Watched) -> str:
    """Compare the times of blocks with the lifetime of their process, as observed by the launcher."""
    for block in blocks:
        if block.start_ns < seen.spawned_ns or block.start_ns + block.elapsed_ns > seen.ended_ns:
            return (
                f"The block from step {block.first_step + 1} on was timed from {(block.start_ns - seen.spawned_ns) / 1e9:.1f} to "
                f"{(block.start_ns + block.elapsed_ns - seen.spawned_ns) / 1e9:.1f} s after the start of the process, which ran "
                f"for {(seen.ended_ns - seen.spawned_ns) / 1e9:.1f} s."
            )
    return ""


def _of_cpu_time(trial: Trial) -> str:
    """Compare CPU time with elapsed time, if the steps run on the cores that CPU time covers."""
    seen, settings = trial.watched, trial.job.case.settings
    if seen is None or settings.device != "cpu":
        return ""
    for block in trial.blocks:
        if block.cpu_ns > CORES_SLACK * seen.cores * block.elapsed_ns + SLACK_NS:
            return _too_much(block, f"{seen.cores} core{'s' if seen.cores > 1 else ''}")
    if threads := _threads(trial):
        counted = [block for block in trial.counted("cached") if block.cpu_ns]
        elapsed_ns, cpu_ns = sum(block.elapsed_ns for block in counted), sum(block.cpu_ns for block in counted)
        if counted and cpu_ns > CORES_SLACK * (threads + HELPERS) * elapsed_ns + SLACK_NS:
            most = max(counted, key=lambda block: block.cpu_ns / block.elapsed_ns)
            return _too_much(most, f"{threads} thread{'s' if threads > 1 else ''} and Python's own")
    cpu_ns = sum(block.cpu_ns for block in trial.blocks)
    if seen.cpu_ns is not None and cpu_ns > CORES_SLACK * seen.cpu_ns + SLACK_NS:
        return (
            f"The steps of the process report {cpu_ns / 1e9:.1f} s of CPU time together, but the system counted "
            f"{seen.cpu_ns / 1e9:.1f} s for all of it."
        )
    return ""


def _threads(trial: Trial) -> int:
    """Return how many threads compute, as read back from the framework; 0 where that is not known, or is of each of several."""
    read_back = trial.applied.get("threads")
    single = trial.job.spread is None
    return read_back if single and isinstance(read_back, int) and trial.job.case.settings.threads == read_back else 0


def _too_much(block: Block, what: str) -> str:
    return (
        f"The block from step {block.first_step + 1} on took {block.elapsed_ns / 1e9:.3g} s by the clock of the process and "
        f"{block.cpu_ns / 1e9:.3g} s of CPU time, more than {what} can use in that time. One of the two is wrong."
    )
