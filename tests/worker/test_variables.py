"""No variable of the user's shell that can change results or speed reaches a worker, and those that are set are named."""

import pytest

from steelyard.catalog import frameworks
from steelyard.environments import clean_environ
from steelyard_worker import variables

DECIDING = {
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "TF_XLA_FLAGS": "--tf_xla_auto_jit=2",
    "ONEDNN_DEFAULT_FPMATH_MODE": "BF16",
    "DNNL_DEFAULT_FPMATH_MODE": "BF16",
    "XLA_FLAGS": "--xla_cpu_enable_fast_math=true",
    "JAX_DEFAULT_MATMUL_PRECISION": "bfloat16",
    "JAX_ENABLE_X64": "1",
    "NVIDIA_TF32_OVERRIDE": "0",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1",
    "PYTORCH_TUNABLEOP_ENABLED": "1",
    "MKL_CBWR": "COMPATIBLE",
    "OMP_NUM_THREADS": "1",
    "KMP_BLOCKTIME": "0",
    "OPENBLAS_NUM_THREADS": "1",
    "MXNET_ENGINE_TYPE": "NaiveEngine",
    "MS_DEV_RUNTIME_CONF": "x",
    "KERAS_BACKEND": "jax",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "MALLOC_ARENA_MAX": "1",
    "LD_PRELOAD": "/lib/other.so",
    "PYTHONPATH": "/elsewhere",
    "PYTHONOPTIMIZE": "2",
    "CXX": "clang++",
}
NEUTRAL = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LANG": "de_DE.UTF-8",
    "LC_ALL": "C",
    "TMPDIR": "/tmp",
    "XDG_CACHE_HOME": "/cache",
    "CUDA_VISIBLE_DEVICES": "1",
}
LIBRARIES = {"LD_LIBRARY_PATH": "/opt/lib", "ASCEND_HOME_PATH": "/opt/ascend"}
OTHERS = {"EDITOR": "vi", "SSL_CERT_FILE": "/c.pem", "TF_CLI_CONFIG_FILE": "/terraform", "PYTHONUNBUFFERED": "1"}
ALL = DECIDING | NEUTRAL | LIBRARIES | OTHERS


@pytest.mark.parametrize("name", DECIDING)
def test_a_variable_that_changes_results_or_speed_is_not_passed_on_and_is_named(name: str) -> None:
    of_frameworks = [each for known in frameworks.listed().values() for each in known.variables]
    assert name not in clean_environ(base=ALL)
    assert variables.ignored({name: DECIDING[name]}, of_frameworks) == [name]


def test_only_neutral_variables_and_those_for_libraries_are_passed_on() -> None:
    assert clean_environ(base=ALL) == NEUTRAL | LIBRARIES
    assert variables.libraries(ALL) == LIBRARIES


def test_variables_that_no_framework_reads_are_dropped_without_a_word() -> None:
    assert variables.ignored(NEUTRAL | LIBRARIES | OTHERS, ["TF_ENABLE_"]) == []


def test_a_process_records_every_variable_that_is_not_neutral() -> None:
    assert variables.deciding(NEUTRAL | LIBRARIES | {"OMP_NUM_THREADS": "2"}) == LIBRARIES | {"OMP_NUM_THREADS": "2"}


def test_every_contender_lists_its_variables() -> None:
    assert [name for name, known in frameworks.listed().items() if not known.variables] == []
