"""Samples -> mel spectrogram, as Tacotron 2 takes it: log(max(x, 1e-5)) of triangular bands over the magnitudes.

Bands are those of Slaney's Auditory Toolbox (1998), librosa's default: linear below 1 kHz, logarithmic above, each of unit area.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.floating[Any]]]

HIGHEST_HZ = 8000.0
QUIETEST = 1e-5
LINEAR_HZ = 200 / 3  # one mel below 1 kHz
KNEE_HZ = 1000.0
STEP = math.log(6.4) / 27  # one mel above


def frame_count(samples: int, hop: int) -> int:
    """Return how many frames so many samples make: one more than whole hops."""
    return 1 + samples // hop


def log_mel(samples: Floats, rate: int, window: int, hop: int, mels: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return float32 (mels, 1 + n // hop) of samples (n,) between -1 and 1, where n is above window / 2.

    Frames are centred on every hop-th sample under a periodic Hann window; the ends are reflected.
    """
    padded = np.pad(samples.astype(np.float64), window // 2, mode="reflect")
    framed = np.lib.stride_tricks.sliding_window_view(padded, window)[::hop]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    magnitudes = np.abs(np.fft.rfft(framed * hann))
    return np.log(np.maximum(filters(rate, window, mels) @ magnitudes.T, QUIETEST)).astype(np.float32)


@cache
def filters(rate: int, window: int, mels: int) -> Floats:
    """Return float64 (mels, window / 2 + 1): the bands between 0 and 8000 Hz, each a triangle over three neighbouring edges."""
    edges = hertz(np.linspace(0.0, float(mel(HIGHEST_HZ)), mels + 2))
    bins = np.arange(window // 2 + 1) * rate / window
    low, middle, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    triangles = np.minimum((bins - low) / (middle - low), (high - bins) / (high - middle))
    return np.asarray(np.maximum(triangles, 0.0) * 2 / (high - low))


def mel(frequency: float | Floats) -> Floats:
    """Return the mels of frequencies in Hz."""
    above = KNEE_HZ / LINEAR_HZ + np.log(np.maximum(frequency, KNEE_HZ) / KNEE_HZ) / STEP
    return np.where(np.less(frequency, KNEE_HZ), np.divide(frequency, LINEAR_HZ), above)


def hertz(mels: float | Floats) -> Floats:
    """Undo `mel`."""
    knee = KNEE_HZ / LINEAR_HZ
    return np.where(np.less(mels, knee), np.multiply(mels, LINEAR_HZ), KNEE_HZ * np.exp(STEP * np.subtract(mels, knee)))
