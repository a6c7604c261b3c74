"""oneDNN's log, old and new form: only the profiled block counts."""

from __future__ import annotations

import pytest

from steelyard.profiles import onednn
from steelyard.profiles.onednn import Kernel
from steelyard_worker.protocol import PROFILE_BEGINS, PROFILE_ENDS

NEW = "onednn_verbose,v1,primitive,exec,cpu,convolution,brg_conv_fwd:avx512_core,{},src:f32::blocked:acdb::f0,,alg:convolution_direct,mb64,{}\n"
OLD = "dnnl_verbose,exec,cpu,convolution,jit:avx2,{},src_f32::blocked:abcd:f0,,alg:convolution_direct,mb64,{}\n"
MADE = "onednn_verbose,v1,primitive,create:cache_hit,cpu,convolution,brg,backward_data,src,,alg,mb64,9.0\n"


@pytest.mark.parametrize("line", [NEW, OLD])
def test_the_kernels_of_the_profiled_block_are_read(line: str) -> None:
    log = [
        line.format("backward_data", "7"),
        f"{PROFILE_BEGINS}\n",
        MADE,
        "Some warning, exec, of another kind\n",
        line.format("backward_data", "1.5"),
        line.format("backward_weights", "4.5"),
        line.format("forward_training", "3"),
        f"{PROFILE_ENDS}\n",
        line.format("backward_data", "7"),
    ]
    found = list(onednn.kernels(log))
    assert [(each.direction, each.milliseconds) for each in found] == [
        ("backward_data", 1.5),
        ("backward_weights", 4.5),
        ("forward_training", 3),
    ]
    assert onednn.to_data(found) == 0.25
    ((primitive, _),) = onednn.shares(found)
    assert primitive == "convolution"


def test_damaged_lines_are_left_out() -> None:
    assert (
        list(
            onednn.kernels(
                [PROFILE_BEGINS, "onednn_verbose,v1,primitive,exec,cpu\n", "dnnl_verbose,exec,cpu,a,b,c,soon\n"]
            )
        )
        == []
    )


def test_without_convolutions_nothing_is_divided() -> None:
    found = [Kernel("reorder", "jit:uni", "undef", 3.0), Kernel("matmul", "brg", "undef", 1.0)]
    assert onednn.to_data(found) is None
    assert onednn.shares(found) == {("reorder", "jit:uni"): 0.75, ("matmul", "brg"): 0.25}
    assert onednn.shares([]) == {}
