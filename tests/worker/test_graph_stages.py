"""Choices of passes, and programs whose operations are counted from their text."""

from __future__ import annotations

from steelyard_worker.frameworks.jax import graphs as programs
from steelyard_worker.graphs import cumulative, leave_one_out

LOWERED = """module @jit_step {
  func.func public @main(%arg0: tensor<2xf32>) -> (tensor<2xf32>) {
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<2xf32>
    %1:2 = call @inner(%0) : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
    %2 = "stablehlo.gather"(%1#0) : (tensor<2xf32>) -> tensor<2xf32>
    %3 = chlo.square %2 : tensor<2xf32> -> tensor<2xf32>
    stablehlo.while(%x = %3) : tensor<2xf32>
    return %3 : tensor<2xf32>
  }
  func.func private @inner(%arg0: tensor<2xf32>) -> (tensor<2xf32>) {
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<2xf32>
    stablehlo.return %0 : tensor<2xf32>
  }
}
"""
COMPILED = """HloModule jit_step

%region_0.1 (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  ROOT %add.1 = f32[] add(%a, %a)
}

%fused_computation (p: f32[2]) -> f32[2] {
  %p = f32[2]{0} parameter(0)
  ROOT %mul = f32[2]{0} multiply(%p, %p)
}

%body.2 (s: (f32[2])) -> (f32[2]) {
  %s = (f32[2]{0}, f32[]) parameter(0)
  ROOT %dot.1 = f32[2]{0} dot(%s, %s)
}

%condition.3 (s: (f32[2])) -> pred[] {
  ROOT %lt = pred[] compare(%s, %s), direction=LT
}

%outlined.4 (q: f32[2]) -> f32[2] {
  ROOT %copy.9 = f32[2]{0} copy(%q)
}

ENTRY %main.5 (x: f32[2]) -> f32[2] {
  %x = f32[2]{0} parameter(0)
  %f = f32[2]{0} fusion(%x), kind=kLoop, calls=%fused_computation, metadata={op_name="a = b"}
  %r = f32[] reduce(%f, %x), dimensions={0}, to_apply=%region_0.1
  %w = (f32[2]{0}) while(%f), condition=%condition.3, body=%body.2
  %b = f32[2]{0} call(%w), to_apply=%outlined.4
  ROOT %c = f32[2]{0} call(%b), to_apply=%outlined.4
}
"""


def test_passes_are_added_one_by_one_and_left_out_one_by_one() -> None:
    assert cumulative(("a", "b", "c")) == ["a", "a+b", "a+b+c"]
    assert leave_one_out(("a", "b", "c")) == ["b+c", "a+c", "a+b"]


def test_the_operations_of_a_lowered_program_are_counted_with_its_calls() -> None:
    assert programs.operations(LOWERED) == {"call": 1, "gather": 1, "multiply": 2, "square": 1, "while": 1}


def test_instructions_count_where_they_run_on_their_own() -> None:
    """Those of a fusion or of a sum are part of it; those of a loop, and of what is called, count once each."""
    assert programs.instructions(COMPILED) == {
        "call": 2,
        "compare": 1,
        "copy": 1,
        "dot": 1,
        "fusion": 1,
        "parameter": 2,
        "reduce": 1,
        "while": 1,
    }
