"""Environment variables: which of the user's reach a worker.

Frameworks and the libraries below them read dozens of variables that change results or speed. Those are settings, so they come
from the case, the adapter and the job, and never from the user's shell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Where programs and files are, in which language messages are, and which of several equal devices is used.
NEUTRAL = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "LC_",
    "TZ",
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_",
    "SYSTEMROOT",
    "WINDIR",
    "COMSPEC",
    "PATHEXT",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ASCEND_RT_VISIBLE_DEVICES",
)
# Where libraries are found. Some interpreters do not start without them, so they are passed on, and count as contents of the
# environment.
LIBRARIES = (
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "ASCEND_",
)
# What the loader, the allocator, Python and the common libraries read. A user may expect an effect, so a run names those that are
# set. Each framework lists its own in framework.toml.
COMMON = (
    "GLIBC_TUNABLES",
    "LD_PRELOAD",
    "LD_AUDIT",
    "LD_BIND_NOW",
    "MALLOC_",
    "TCMALLOC_",
    "MIMALLOC_",
    "_RJEM_MALLOC_CONF",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONMALLOC",
    "PYTHONOPTIMIZE",
    "PYTHONHASHSEED",
    "PYTHONSAFEPATH",
    "PYTHONUSERBASE",
    "OMP_",
    "GOMP_",
    "KMP_",
    "MKL_",
    "TBB_",
    "OPENBLAS_",
    "GOTO_",
    "BLIS_",
    "NVPL_",
    "VECLIB_",
    "NUMEXPR_",
    "NPY_",
    "DNNL_",
    "ONEDNN_",
    "CUBLAS_",
    "CUBLASLT_",
    "CUDNN_",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "NCCL_",
    "NVIDIA_TF32_OVERRIDE",
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
)
# What libraries read to compute in a lower precision, or on another number of threads, some of it when they first compute.
# Nothing sets these once the framework has started, except an implementation.
PRECISION = (
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "DNNL_DEFAULT_FPMATH_MODE",
    "TF_SET_ONEDNN_FPMATH_MODE",
    "NVIDIA_TF32_OVERRIDE",
    "TF_ENABLE_AUTO_MIXED_PRECISION",
    "TF_AUTO_MIXED_PRECISION_",
    "TF_FP16_",
    "MKL_BLAS_COMPUTE_MODE",
    "XLA_FLAGS",
    "TF_XLA_FLAGS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
)
# Set for the ranks of a trial: the names of the variables that the orchestrator has chosen.
GIVEN = "STEELYARD_GIVEN"


def passed(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a child process gets from the user's."""
    return {name: value for name, value in environ.items() if _is_listed(name, NEUTRAL + LIBRARIES)}


def libraries(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that are passed on and decide which libraries are loaded."""
    return {name: value for name, value in deciding(environ).items() if _is_listed(name, LIBRARIES)}


def deciding(environ: Mapping[str, str]) -> dict[str, str]:
    """Return every variable of a process that is not neutral.

    Launchers of ranks set further ones, such as ports and ranks, which differ in every trial; they are left out by GIVEN.
    """
    given = environ.get(GIVEN, "").split(",")
    return {
        name: value
        for name, value in sorted(environ.items())
        if not _is_listed(name, NEUTRAL) and (name in given or GIVEN not in environ)
    }


def precision(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that decide the precision of products or the number of threads."""
    return {name: value for name, value in sorted(environ.items()) if _is_listed(name, PRECISION)}


def ignored(environ: Mapping[str, str], of_frameworks: Iterable[str] = ()) -> list[str]:
    """Return the names of the user's variables that change results or speed and are not passed on."""
    listed = (*COMMON, *of_frameworks)
    return sorted(name for name in environ.keys() - passed(environ).keys() if _is_listed(name, listed))


def _is_listed(name: str, listed: Iterable[str]) -> bool:
    """An entry that ends with `_` stands for every name that begins with it. Case does not count, as on Windows."""
    name = name.upper()
    return any(name.startswith(entry) if entry.endswith("_") else name == entry for entry in listed)
