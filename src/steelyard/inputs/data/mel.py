"""Samples -> mel spectrogram as in Tacotron 2: log(max(x, 1e-5)) of triangular bands over the magnitudes.

The bands are those of Slaney's Auditory Toolbox (1998), the default of librosa: linear below 1 kHz, logarithmic above, each
of unit area. They need a few lines of NumPy; librosa would add numba, scikit-learn and others as dependencies.
"""

import math
from functools import cache
from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.floating[Any]]]

HIGHEST_HZ = 8000.0
MIN_MAGNITUDE = 1e-5
HZ_PER_MEL = 200 / 3  # below 1 kHz
BREAK_HZ = 1000.0  # between the linear and the logarithmic part
LOG_HZ_PER_MEL = math.log(6.4) / 27  # above 1 kHz


def frame_count(samples: int, hop: int) -> int:
    """Return the number of frames of a recording of `samples` samples: the number of full hops plus one."""
    return 1 + samples // hop


def log_mel(samples: Floats, rate: int, window: int, hop: int, mels: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return float32 (mels, 1 + n // hop) of samples (n,) from -1 to 1, where n is above window / 2.

    Frames are centred on every hop-th sample under a periodic Hann window. The signal is reflected at its ends.
    """
    padded = np.pad(samples.astype(np.float64), window // 2, mode="reflect")
    framed = np.lib.stride_tricks.sliding_window_view(padded, window)[::hop]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    magnitudes = np.abs(np.fft.rfft(framed * hann))
    return np.log(np.maximum(mel_filters(rate, window, mels) @ magnitudes.T, MIN_MAGNITUDE)).astype(np.float32)


@cache
def mel_filters(rate: int, window: int, mels: int) -> Floats:
    """Return float64 (mels, window / 2 + 1): the bands from 0 to 8000 Hz, each a triangle over three neighbouring edges."""
    edges = mel_to_hz(np.linspace(0.0, float(hz_to_mel(HIGHEST_HZ)), mels + 2))
    bins = np.arange(window // 2 + 1) * rate / window
    low, middle, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    triangles = np.minimum((bins - low) / (middle - low), (high - bins) / (high - middle))
    return np.asarray(np.maximum(triangles, 0.0) * 2 / (high - low))


def hz_to_mel(frequency: float | Floats) -> Floats:
    """Return the mels of frequencies in Hz."""
    above = BREAK_HZ / HZ_PER_MEL + np.log(np.maximum(frequency, BREAK_HZ) / BREAK_HZ) / LOG_HZ_PER_MEL
    return np.where(np.less(frequency, BREAK_HZ), np.divide(frequency, HZ_PER_MEL), above)


def mel_to_hz(mels: float | Floats) -> Floats:
    """Return the frequencies in Hz of mels."""
    at_break = BREAK_HZ / HZ_PER_MEL
    above = BREAK_HZ * np.exp(LOG_HZ_PER_MEL * np.subtract(mels, at_break))
    return np.where(np.less(mels, at_break), np.multiply(mels, HZ_PER_MEL), above)
