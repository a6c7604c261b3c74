"""Sound files: what their headers promise, their samples, and many of them at a time on every processor."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError
from steelyard.host import usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path

    Floats = np.ndarray[Any, np.dtype[np.float32]]

AHEAD = 4  # recordings under way per thread: what bounds the memory


def threads() -> int:
    """Libsndfile and NumPy's transforms let go of the interpreter, so threads use every processor."""
    return usable_cores()


def ahead(pool: ThreadPoolExecutor, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """Yield results in order, with a bounded number of them under way: a pool's own `map` would take in everything."""
    waiting: deque[Any] = deque()
    for item in items:
        waiting.append(pool.submit(function, item))
        if len(waiting) > AHEAD * threads():
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def count_samples(path: Path, rate: int) -> int:
    """Return the length in samples that a recording's header promises; UserError: damaged, not mono, or of another rate."""
    import soundfile

    try:
        header = soundfile.info(path)
    except soundfile.SoundFileError as error:
        raise _damaged(path, error) from error
    if (header.samplerate, header.channels) != (rate, 1):
        raise UserError(
            f"{path} has {header.channels} channel(s) at {header.samplerate} Hz; one channel at {rate} Hz is needed."
        )
    return int(header.frames)


def decode(path: Path, rate: int) -> Floats:
    """Return the samples float32 (n,), between -1 and 1; UserError as `count_samples`, and where the recording ends early."""
    import soundfile

    try:
        samples, _ = soundfile.read(path, dtype="float32")
    except soundfile.SoundFileError as error:
        raise _damaged(path, error) from error
    if len(samples) != count_samples(path, rate):
        raise _damaged(path, f"it ends after {len(samples):,} samples")
    return np.asarray(samples, np.float32)


def _damaged(path: Path, reason: object) -> UserError:
    return UserError(f"{path} is damaged or cut short ({str(reason).rstrip('.')}); fetch it again.")
