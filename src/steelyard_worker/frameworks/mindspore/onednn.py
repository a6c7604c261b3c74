"""The oneDNN library in MindSpore's wheel: its version, and whether it uses AVX-512.

MindSpore passes convolutions to oneDNN in plain layouts (NCHW, OIHW). For those, oneDNN 3.10 with AVX-512 selects reference
loops; without AVX-512 it uses its matrix product, which makes a step of ResNet-18 twenty-five times faster. LSTMs and matrix
products are faster with AVX-512. oneDNN decides once per process, when it creates its first kernel, so the network must be known
before.
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
# dnnl_fpmath_mode_t
FPMATH = {0: "strict", 1: "bf16", 2: "f16", 3: "any", 4: "tf32"}


class Instructions:
    """The knob `avx512`: "on", "off", or "auto", which is off for networks with convolutions and on for others."""

    def __init__(self, wanted: str) -> None:
        self._wanted = wanted
        self._decided = wanted != "auto"
        if wanted == "off":
            _leave_avx512_alone()

    def decide(self, network: Network) -> None:
        """Decide "auto" for a network; refused if oneDNN has already decided otherwise."""
        if self._decided:
            return
        self._decided = True
        if any(parameter.kind in ("conv", "conv1d") for parameter in network.parameters):
            _leave_avx512_alone()
            if _effective() & AVX512:
                raise Refusal(
                    "setting", "AVX-512 could not be switched off, because oneDNN had already created its first kernel."
                )

    def applied(self) -> dict[str, Any]:
        """Read the setting back from oneDNN; refused if the processor does not have what was asked for.

        Reading makes oneDNN decide, so "auto" is not read before the network is known.
        """
        if not self._decided:
            return {"avx512": "auto", "onednn_isa": "depends on the network"}
        found = "on" if _effective() & AVX512 else "off"
        if (self._wanted, found) == ("on", "off"):
            raise Refusal("unsupported", "oneDNN finds no AVX-512 on this processor.")
        return {"avx512": "auto" if self._wanted == "auto" else found, "onednn_isa": hex(_effective())}


def _leave_avx512_alone() -> None:
    os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX2"


def _effective() -> int:
    """Return dnnl_get_effective_cpu_isa(); 0 if the wheel contains no oneDNN."""
    library = _library()
    return int(library.dnnl_get_effective_cpu_isa()) if library else 0


def precision() -> str:
    """Return the precision that oneDNN may use inside float32 primitives that say nothing else; empty without oneDNN.

    oneDNN reads it from variables once, when it first needs it.
    """
    library, found = _library(), ctypes.c_int(-1)
    if not library:
        return ""
    failed = library.dnnl_get_default_fpmath_mode(ctypes.byref(found))
    return "unknown" if failed else FPMATH.get(found.value, str(found.value))


class _Version(ctypes.Structure):
    """Head of dnnl_version_t."""

    _fields_ = (("major", ctypes.c_int), ("minor", ctypes.c_int), ("patch", ctypes.c_int))


def version() -> str:
    """Return dnnl_version(); empty if the wheel contains no oneDNN."""
    library = _library()
    if not library:
        return ""
    library.dnnl_version.restype = ctypes.POINTER(_Version)
    found = library.dnnl_version().contents
    return f"{found.major}.{found.minor}.{found.patch}"


def _library() -> ctypes.CDLL | None:
    found = sorted((Path(mindspore.__file__).parent / "lib").glob("libdnnl.so*"))
    return ctypes.CDLL(str(found[0])) if found else None
