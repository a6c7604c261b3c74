"""Read recordings, WAV and FLAC: the number of samples in the header, and the samples themselves."""

from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import UserError
from steelyard.inputs.data.damage import check_regular, refusing
from steelyard.inputs.data.riff import check_complete

Floats = np.ndarray[Any, np.dtype[np.float32]]

WAV, FLAC = ("WAV", "WAVEX", "RF64"), ("FLAC",)  # as libsndfile names them; those whose end can be checked


def count_samples(path: Path, rate: int) -> int:
    """Return the number of samples in the header.

    UserError: the file is damaged or truncated, of another format, not mono, or has another sampling rate.
    """
    import soundfile

    check_regular(path)
    with refusing(f"{path} is damaged or truncated", soundfile.SoundFileError):
        header = soundfile.info(path)
    if header.format not in WAV + FLAC:
        raise UserError(f"{path} is a recording in the format {header.format}; convert it to WAV or FLAC.")
    if header.format in WAV:
        check_complete(path)  # libsndfile would use what is there
    if (header.samplerate, header.channels) != (rate, 1):
        raise UserError(
            f"{path} has {header.channels} channel(s) at {header.samplerate} Hz; convert it to one channel at {rate} Hz."
        )
    return int(header.frames)


def read_samples(path: Path, rate: int) -> Floats:
    """Return the samples float32 (n,), from -1 to 1 for whole numbers of any width.

    UserError as in `count_samples`, or the recording ends early, or a sample is no number.
    """
    import soundfile

    expected = count_samples(path, rate)
    with refusing(f"{path} is damaged or truncated", soundfile.SoundFileError, EOFError):
        samples, _ = soundfile.read(path, dtype="float32")
        if len(samples) != expected:
            message = f"it ends after {len(samples):,} of {expected:,} samples"
            raise EOFError(message)
    if not np.isfinite(samples).all():
        raise UserError(
            f"{path} has samples that are no numbers, the first at {np.argmin(np.isfinite(samples)):,}; replace it, or remove it."
        )
    return np.asarray(samples, np.float32)
