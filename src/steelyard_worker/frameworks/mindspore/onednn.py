"""The oneDNN in MindSpore's wheel: which version it is, and whether it may use AVX-512.

MindSpore hands convolutions over in plain layouts (NCHW, OIHW). Where oneDNN 3.10 may use AVX-512, its choice for those ends
in reference loops; without AVX-512 it takes its matrix product: ResNet-18's whole step is then twenty-five times faster. LSTM
and matrix products gain from AVX-512. oneDNN decides once per process, when its first kernel is made, so the network has to be
known before.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mindspore

from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from steelyard_worker.network import Network

# Bit of AVX-512 in dnnl_cpu_isa_t.
AVX512 = 0x20


class Instructions:
    """What oneDNN may use: "on", "off", or "auto", which is off for networks with convolutions and on for others."""

    def __init__(self, wanted: str) -> None:
        self._wanted = wanted
        self._decided = wanted != "auto"
        if wanted == "off":
            _leave_avx512_alone()

    def decide(self, network: Network) -> None:
        """Settle "auto" for a network; refused when oneDNN has decided otherwise before."""
        if self._decided:
            return
        self._decided = True
        if any(parameter.kind in ("conv", "conv1d") for parameter in network.parameters):
            _leave_avx512_alone()
            if _effective() & AVX512:
                raise Refusal(
                    "setting", "oneDNN was to leave AVX-512 alone, but its first kernel had been made already."
                )

    def applied(self) -> dict[str, Any]:
        """Read back from oneDNN; asking is deciding, so "auto" is not asked for before the network is known."""
        if not self._decided:
            return {"avx512": "auto", "onednn_isa": "left to the network"}
        found = "on" if _effective() & AVX512 else "off"
        return {"avx512": "auto" if self._wanted == "auto" else found, "onednn_isa": hex(_effective())}


def _leave_avx512_alone() -> None:
    os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX2"


def _effective() -> int:
    """Return dnnl_get_effective_cpu_isa(); 0 where the wheel brings no oneDNN."""
    library = _library()
    return int(library.dnnl_get_effective_cpu_isa()) if library else 0


class _Version(ctypes.Structure):
    """Head of dnnl_version_t."""

    _fields_ = (("major", ctypes.c_int), ("minor", ctypes.c_int), ("patch", ctypes.c_int))


def version() -> str:
    """Return dnnl_version(); empty where the wheel brings no oneDNN."""
    library = _library()
    if not library:
        return ""
    library.dnnl_version.restype = ctypes.POINTER(_Version)
    found = library.dnnl_version().contents
    return f"{found.major}.{found.minor}.{found.patch}"


def _library() -> ctypes.CDLL | None:
    found = sorted((Path(mindspore.__file__).parent / "lib").glob("libdnnl.so*"))
    return ctypes.CDLL(str(found[0])) if found else None
