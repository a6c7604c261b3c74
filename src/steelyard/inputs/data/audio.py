"""Read recordings: the number of samples in the header, and the samples themselves."""

from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import UserError
from steelyard.inputs.data.damage import refusing

Floats = np.ndarray[Any, np.dtype[np.float32]]


def count_samples(path: Path, rate: int) -> int:
    """Return the number of samples in the header; UserError: the file is damaged, not mono, or has another sampling rate."""
    import soundfile

    with refusing(f"{path} is damaged or truncated", soundfile.SoundFileError):
        header = soundfile.info(path)
    if (header.samplerate, header.channels) != (rate, 1):
        raise UserError(
            f"{path} has {header.channels} channel(s) at {header.samplerate} Hz; convert it to one channel at {rate} Hz."
        )
    return int(header.frames)


def read_samples(path: Path, rate: int) -> Floats:
    """Return the samples float32 (n,) from -1 to 1; UserError as in `count_samples`, or the recording ends early."""
    import soundfile

    with refusing(f"{path} is damaged or truncated", soundfile.SoundFileError, EOFError):
        samples, _ = soundfile.read(path, dtype="float32")
        if len(samples) != count_samples(path, rate):
            message = f"it ends after {len(samples):,} samples"
            raise EOFError(message)
    return np.asarray(samples, np.float32)
