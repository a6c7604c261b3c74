"""Traces of profilers on a GPU -> operations. The events are taken from profiles on an NVIDIA H200."""

from __future__ import annotations

from typing import Any

from steelyard_worker.frameworks.jax import traces as jax_traces
from steelyard_worker.frameworks.pytorch import traces as pytorch_traces

HOST, GPU = 2910, 0


def of_host(name: str, start_us: float, duration_us: float, number: int, category: str = "cpu_op") -> dict[str, Any]:
    arguments = {"External id": number}
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": HOST,
        "tid": HOST,
        "ts": start_us,
        "dur": duration_us,
        "args": arguments,
    }


def on_gpu(
    category: str, name: str, start_us: float, duration_us: float, number: int, stream: int = 7
) -> dict[str, Any]:
    return of_host(name, start_us, duration_us, number, category) | {"pid": GPU, "tid": stream}


PYTORCH = [
    {"ph": "M", "name": "process_name", "pid": GPU, "args": {"name": "python3"}},
    of_host("steelyard.block", 1000.0, 400.0, 1537, "user_annotation"),
    on_gpu("gpu_user_annotation", "steelyard.block", 1040.0, 300.0, 1537),
    of_host("aten::to", 1001.0, 30.0, 1),
    of_host("aten::copy_", 1002.0, 28.0, 2),
    on_gpu("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 1040.0, 12.5, 2),
    of_host("aten::cudnn_convolution", 1050.0, 40.0, 3),
    {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": "cudaLaunchKernel",
        "pid": HOST,
        "tid": HOST,
        "ts": 1060.0,
        "dur": 5.0,
        "args": {"External id": 3},
    },
    on_gpu("kernel", "void convolve_common_engine_float_NHWC<float, float>", 1070.0, 9.4, 3),
    of_host("## Call CompiledFxGraph ##", 1100.0, 100.0, 4),
    on_gpu("kernel", "triton_poi_fused_add_relu_0", 1110.0, 1.8, 4, stream=13),
    on_gpu("gpu_memset", "Memset (Device)", 1150.0, 0.7, 99),
]


def test_pytorch_names_a_kernel_after_the_operation_that_started_it() -> None:
    origin, found = pytorch_traces.operations(PYTORCH, on_gpu=True)
    assert origin == 1_000_000.0
    assert found == [
        ((GPU, 7), "aten::copy_", 1_040_000.0, 12_500.0),
        ((GPU, 7), "aten::cudnn_convolution", 1_070_000.0, 9_400.0),
        ((GPU, 13), "triton_poi_fused_add_relu_0", 1_110_000.0, 1_800.0),  # what it joins is in its own name
        ((GPU, 7), "Memset (Device)", 1_150_000.0, 700.0),  # nothing in the trace started it
    ]


def test_pytorch_on_the_cpu_has_the_operations_of_the_host() -> None:
    origin, found = pytorch_traces.operations(PYTORCH, on_gpu=False)
    names = ["aten::to", "aten::copy_", "aten::cudnn_convolution", "## Call CompiledFxGraph ##"]
    assert (origin, [name for _, name, _, _ in found]) == (1_000_000.0, names)


def of_stream(name: str, start_us: float, stream: int = 14, **arguments: str) -> dict[str, Any]:
    return {"ph": "X", "pid": 1, "tid": stream, "name": name, "ts": start_us, "dur": 2.0, "args": arguments}


JAX = [
    {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/device:GPU:0"}},
    {"ph": "M", "name": "process_name", "pid": 701, "args": {"name": "/host:CPU"}},
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 14, "args": {"name": "Stream #14(MemcpyD2D,Compute,Memset)"}},
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 15, "args": {"name": "Stream #15(MemcpyH2D)"}},
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 20, "args": {"name": "XLA Ops"}},
    {"ph": "M", "name": "thread_name", "pid": 701, "tid": 5, "args": {"name": "python3"}},
    {"ph": "X", "pid": 701, "tid": 5, "name": "steelyard.block", "ts": 8637.0, "dur": 900.0},
    {
        "ph": "X",
        "pid": 701,
        "tid": 5,
        "name": "cudnn-conv.44",
        "ts": 8640.0,
        "dur": 9.0,
        "args": {"hlo_op": "cudnn-conv.44"},
    },
    of_stream("loop_add_fusion_1", 8700.0, hlo_module="jit__update", hlo_op="command_buffer_1"),
    of_stream("void wgrad_alg0_engine", 8703.0, hlo_module="jit__update", hlo_op="cudnn-conv-bw-filter.26"),
    of_stream("MemcpyH2D", 8704.0, stream=15),
    of_stream("cudnn-conv-bw-filter.26", 8703.0, stream=20, hlo_module="jit__update", hlo_op="cudnn-conv-bw-filter.26"),
]


def test_jax_names_a_kernel_after_its_instruction_and_one_of_a_graph_as_xla_named_it() -> None:
    origin, found = jax_traces.operations(JAX)
    assert origin == 8_637_000.0
    assert found == [
        ((1, 14), "jit__update/loop_add_fusion_1", 8_700_000.0, 2_000.0),
        ((1, 14), "jit__update/cudnn-conv-bw-filter.26", 8_703_000.0, 2_000.0),
        ((1, 15), "MemcpyH2D", 8_704_000.0, 2_000.0),
    ]


def test_jax_without_a_gpu_has_the_instructions_of_the_host() -> None:
    _, found = jax_traces.operations(event for event in JAX if event["pid"] == 701)
    assert found == [((701, 5), "/cudnn-conv.44", 8_640_000.0, 9_000.0)]
