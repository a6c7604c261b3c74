"""XLA's program: what an instruction belongs to, by call stack, by operation, by what a fusion contains, by sizes."""

from __future__ import annotations

import pytest
import tomllib

from steelyard.catalog import frameworks
from steelyard.profiles import hlo
from steelyard.profiles.classes import table

PROGRAM = """\
HloModule jit__update, is_scheduled=true

FileNames
1 "trainer.py"

FunctionNames
1 "Trainer._update"
2 "forward"
3 "Layers.batch_norm"
4 "Native.update"
5 "Layers.conv"
6 "Layers.dense"

FileLocations
1 {file_name_id=1 function_name_id=1 line=1 end_line=1 column=1 end_column=2}
2 {file_name_id=1 function_name_id=2 line=2 end_line=2 column=1 end_column=2}
3 {file_name_id=1 function_name_id=3 line=3 end_line=3 column=1 end_column=2}
4 {file_name_id=1 function_name_id=4 line=4 end_line=4 column=1 end_column=2}
5 {file_name_id=1 function_name_id=5 line=5 end_line=5 column=1 end_column=2}
6 {file_name_id=1 function_name_id=6 line=6 end_line=6 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=3}
4 {file_location_id=4 parent_frame_id=2}
5 {file_location_id=5 parent_frame_id=3}
6 {file_location_id=6 parent_frame_id=3}

%fused_norm (param_0: f32[4,8]) -> f32[4,8] {
  %param_0 = f32[4,8]{1,0} parameter(0)
  %multiply.1 = f32[4,8]{1,0} multiply(%param_0, %param_0), metadata={op_name="jit(_update)/jvp()/mul" stack_frame_id=3}
  ROOT %add.1 = f32[1]{0} add(%multiply.1, %multiply.1), metadata={op_name="jit(_update)/add" stack_frame_id=4}
}

%fused_weights (param_0.1: f32[1,32,32,64], param_1.1: f32[64,32,32,16]) -> f32[1,3,3,16] {
  %param_0.1 = f32[1,32,32,64]{3,2,1,0} parameter(0)
  %param_1.1 = f32[64,32,32,16]{3,2,1,0} parameter(1)
  ROOT %convolution.21 = f32[1,3,3,16]{3,2,1,0} convolution(%param_0.1, %param_1.1), window={size=32x32 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
}

%fused_copy (param_0.2: f32[64,32,32,1]) -> f32[1,32,32,64] {
  %param_0.2 = f32[64,32,32,1]{3,2,1,0} parameter(0)
  ROOT %transpose.123 = f32[1,32,32,64]{0,2,1,3} transpose(%param_0.2), dimensions={3,1,2,0}
}

ENTRY %main.206 (image.1: f32[64,32,32,1]) -> f32[] {
  %image.1 = f32[64,32,32,1]{3,2,1,0} parameter(0), metadata={op_name="image"}
  %kernel.1 = f32[3,3,1,16]{3,2,1,0} parameter(1), metadata={op_name="kernel"}
  %hidden.1 = f32[64,576]{1,0} parameter(2), metadata={op_name="hidden"}
  %forward.1 = f32[64,32,32,16]{3,2,1,0} convolution(%image.1, %kernel.1), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, metadata={op_name="jit(_update)/jvp()/conv_general_dilated" stack_frame_id=5}
  %data.1 = f32[64,32,32,1]{3,2,1,0} convolution(%forward.1, %kernel.1), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01oi->b01f, metadata={op_name="jit(_update)/transpose(jvp())/conv_general_dilated" stack_frame_id=5}
  %weights.1 = f32[1,3,3,16]{3,2,1,0} fusion(%image.1, %forward.1), kind=kCustom, calls=%fused_weights
  %columns.1 = f32[64,16]{1,0} dot(%hidden.1, %kernel.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(_update)/jvp()/dot_general" stack_frame_id=5}
  %summed.1 = f32[16,16]{1,0} dot(%hidden.1, %hidden.1), lhs_contracting_dims={0}, rhs_contracting_dims={0}, metadata={op_name="jit(_update)/transpose(jvp())/dot_general" stack_frame_id=5}
  %pad.1 = f32[64,34,34,1]{3,2,1,0} pad(%image.1, %kernel.1), metadata={op_name="jit(_update)/jvp()/pad" stack_frame_id=5}
  %dense.1 = f32[64,10]{1,0} dot(%hidden.1, %kernel.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(_update)/jvp()/dot_general" stack_frame_id=6}
  %norm.1 = f32[4,8]{1,0} fusion(%image.1), kind=kLoop, calls=%fused_norm, metadata={op_name="jit(_update)/add" stack_frame_id=4}
  %copy.1 = f32[1,32,32,64]{3,2,1,0} fusion(%image.1), kind=kLoop, calls=%fused_copy, backend_config={"outer_dimension_partitions":["1","2"]}
  %tanh.1 = (f32[64]{0}, f32[64]{0}) tanh(%image.1), metadata={op_name="jit(_update)/jvp()/tanh" stack_frame_id=2}
  %all-reduce.1 = f32[64,10]{1,0} all-reduce(%dense.1), to_apply=%sum, metadata={op_name="jit(_update)/transpose(jvp())/dot_general" stack_frame_id=6}
  %cudnn-conv.44 = (f32[64,4,4,64]{3,2,1,0}, u8[0]{0}) custom-call(%image.1, %kernel.1), window={size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convForward", metadata={op_name="jit(_update)/jvp()/conv_general_dilated" stack_frame_id=5}
  %cudnn-conv.50 = (f32[64,4,4,64]{3,2,1,0}, u8[0]{0}) custom-call(%image.1, %kernel.1), window={size=3x3 rhs_reversal=1x1}, dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convForward", metadata={op_name="jit(_update)/transpose(jvp())/conv_general_dilated" stack_frame_id=5}
  %cudnn-conv-bw-input.3 = (f32[64,8,8,64]{3,2,1,0}, u8[0]{0}) custom-call(%image.1, %kernel.1), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convBackwardInput", metadata={op_name="jit(_update)/transpose(jvp())/conv_general_dilated" stack_frame_id=5}
  %cudnn-conv-bw-filter.26 = (f32[64,3,3,64]{3,2,1,0}, u8[0]{0}) custom-call(%image.1, %forward.1), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convBackwardFilter", metadata={op_name="jit(_update)/transpose(jvp())/conv_general_dilated" stack_frame_id=5}
  %cublas-gemm.1 = (f32[64,10]{1,0}, s8[4096]{0}) custom-call(%hidden.1, %kernel.1), custom_call_target="__cublas$gemm", metadata={op_name="jit(_update)/jvp()/dot_general" stack_frame_id=6}
  ROOT %odd.1 = f32[]{} something-new(%image.1)
}
"""


@pytest.fixture(scope="module")
def known() -> dict[str, str]:
    rules = tomllib.loads((frameworks.BUILT_IN / "jax" / frameworks.OPERATIONS).read_text())
    return hlo.classes(hlo.parse(PROGRAM), table(rules["operations"]), table(rules["stack"]))


def test_stacks_are_read_innermost_first() -> None:
    stacks = hlo.parse(PROGRAM).stacks
    assert stacks[3] == ("Layers.batch_norm", "forward", "Trainer._update")
    assert stacks[4] == ("Native.update", "Trainer._update")


@pytest.mark.parametrize(
    ("instruction", "kind"),
    [
        ("forward.1", "convolution, forward"),
        ("data.1", "convolution, backward to data"),
        ("weights.1", "convolution, backward to weights"),  # without a name: its window is larger than its result
        ("columns.1", "convolution, forward"),  # a convolution by a matrix product
        ("summed.1", "convolution, backward to weights"),  # it adds up more than its result has
        ("pad.1", "copies and layout"),
        ("dense.1", "matrix product"),
        ("norm.1", "normalisation"),  # most of what it makes, though the optimizer asked for its last instruction
        ("copy.1", "copies and layout"),  # made by layout assignment
        ("tanh.1", "elementwise"),
        ("all-reduce.1", "exchange between ranks"),  # whatever its product belongs to
        ("cudnn-conv.44", "convolution, forward"),  # on a GPU, calls of its libraries
        ("cudnn-conv.50", "convolution, backward to data"),  # the forward function, for a gradient
        ("cudnn-conv-bw-input.3", "convolution, backward to data"),
        ("cudnn-conv-bw-filter.26", "convolution, backward to weights"),
        ("cublas-gemm.1", "matrix product"),
        ("odd.1", ""),
    ],
)
def test_an_instruction_has_the_class_of_what_it_computes(known: dict[str, str], instruction: str, kind: str) -> None:
    assert known[instruction] == kind


def test_a_stack_that_names_itself_as_its_parent_ends() -> None:
    text = "StackFrames\n1 {file_location_id=1 parent_frame_id=2}\n2 {file_location_id=1 parent_frame_id=3}\n"
    assert set(hlo.parse(text).stacks) == {1, 2}


def test_a_text_of_another_form_has_no_instructions() -> None:
    assert hlo.parse("nothing\n  that is = a program(\n").computations == {}
