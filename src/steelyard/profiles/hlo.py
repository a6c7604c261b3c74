"""Classify the instructions of XLA's optimised program (as text) by their computation and by the Python code that caused them.

The content of a fusion decides: a convolution or matrix product, otherwise a vote of its instructions by number of elements.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from steelyard.profiles.classes import CONVOLUTION, EXCHANGE, FORWARD, TO_DATA, TO_WEIGHTS, Table

COPIES = "copies and layout"
# Instructions that compute nothing, or whose work is done by other instructions.
SILENT = ("parameter", "constant", "broadcast", "bitcast", "tuple", "get-tuple-element", "iota")
CONTAINERS = (
    "fusion",
    "call",
    "while",
    "conditional",
    "map",
    "reduce",
    "reduce-window",
    "scatter",
    "sort",
    "select-and-scatter",
)

_MODULE = re.compile(r"^HloModule ([^\s,]+)")
_SECTION = re.compile(r"^(FileNames|FunctionNames|FileLocations|StackFrames)$")
_NAMED = re.compile(r'^(\d+) "(.*)"$')
_NUMBERS = re.compile(r"^(\d+) \{(.*)\}$")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%(\S+) \(")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%(\S+) = (\([^=]*\)|\S+) ([\w-]+)\((.*)$")
_SHAPE = re.compile(r"\w+\[([\d,]*)\]")
_OPERAND = re.compile(r"%([\w.-]+)")
# On a GPU, convolutions are calls of cuDNN.
_CUDNN = re.compile(r'custom_call_target="__cudnn\$conv(\w+)"')
_CUDNN_DIRECTIONS = {"BackwardInput": TO_DATA, "BackwardFilter": TO_WEIGHTS}


@dataclass(frozen=True)
class Instruction:
    """One instruction. `shape`: extents of its result, of a tuple's first element; `called`: the computation that it runs."""

    opcode: str
    shape: tuple[int, ...]
    operands: tuple[str, ...]
    called: str
    op_name: str
    frame: int
    rest: str

    @property
    def elements(self) -> int:
        """The number of elements of the result."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Program:
    """Computations by name, each {instruction: Instruction}; `stacks`: frame -> names of functions, innermost first."""

    module: str
    computations: Mapping[str, Mapping[str, Instruction]]
    stacks: Mapping[int, tuple[str, ...]]


def parse(text: str) -> Program:
    """Return the program of an HLO text; lines of no known form are left out."""
    tables: dict[str, dict[int, str]] = defaultdict(dict)
    computations: dict[str, dict[str, Instruction]] = {}
    section, module, current = "", "", dict[str, Instruction]()
    for line in text.splitlines():
        if found := _MODULE.match(line):
            module = found[1]
        elif found := _SECTION.match(line):
            section = found[1]
        elif section and (found := _NAMED.match(line) or _NUMBERS.match(line)):
            tables[section][int(found[1])] = found[2]
        elif found := _COMPUTATION.match(line):
            section, current = "", computations.setdefault(found[1], {})
        elif found := _INSTRUCTION.match(line):
            name, shape, opcode, rest = found.groups()
            current[name] = _instruction(shape, opcode, rest)
    return Program(module, computations, dict(_stacks(tables)))


def classes(program: Program, operations: Table, stack: Table) -> dict[str, str]:
    """Return the class of every instruction by name; empty where nothing tells it.

    `stack` has the rules for functions on the call stack, `operations` those for operations of JAX and opcodes of XLA.
    """
    return {
        name: _class_of(program, body, each, operations, stack)
        for body in program.computations.values()
        for name, each in body.items()
    }


def kernel_of(instruction: str) -> str:
    """Return the name of the kernel that XLA makes for an instruction on a GPU."""
    return instruction.replace(".", "_").replace("-", "_")


def _class_of(
    program: Program, body: Mapping[str, Instruction], each: Instruction, operations: Table, stack: Table
) -> str:
    inner = program.computations.get(each.called, {}) if each.opcode in ("fusion", "call") else {}
    if inner:
        return _of_fusion(program, each, inner, operations, stack)
    return _plain(program, body, each, operations, stack)


def _of_fusion(
    program: Program, outer: Instruction, inner: Mapping[str, Instruction], operations: Table, stack: Table
) -> str:
    votes = Counter[str]()
    for each in inner.values():
        if each.opcode in ("convolution", "dot"):
            return _plain(program, inner, each, operations, stack, outer)
        if each.opcode == "fusion":
            return _class_of(program, inner, each, operations, stack)
        if each.opcode not in SILENT:
            votes[_plain(program, inner, each, operations, stack)] += each.elements
    if not any(each.frame for each in (outer, *inner.values())):
        return COPIES  # layout assignment adds transposes and copies that no Python code caused
    found = _plain(program, inner, outer, operations, stack)
    return max(votes, key=lambda kind: votes[kind]) if votes else found


def _plain(
    program: Program,
    body: Mapping[str, Instruction],
    each: Instruction,
    operations: Table,
    stack: Table,
    outer: Instruction | None = None,
) -> str:
    """Return the class of an instruction by its call stack, its operation or its opcode; `outer`: the fusion that it is in."""
    if operations.class_of(each.opcode) == EXCHANGE:  # it has the call stack of the operation that it belongs to
        return EXCHANGE
    op_name = each.op_name or (outer.op_name if outer else "")
    if called := _CUDNN.search(each.rest):  # a gradient may call the forward function with other data
        return _CUDNN_DIRECTIONS.get(called[1]) or _direction(body, each, op_name)
    functions = program.stacks.get(each.frame) or (program.stacks.get(outer.frame) if outer else None) or ()
    found = stack.class_of_any(functions) if functions else ""
    found = found or operations.class_of(op_name.rpartition("/")[2]) or operations.class_of(each.opcode)
    if each.opcode == "convolution" or (found == CONVOLUTION and each.opcode == "dot"):
        return _direction(body, each, op_name)
    return {CONVOLUTION: COPIES}.get(found, found)  # other instructions of a convolution: padding, slices, layouts


def _direction(body: Mapping[str, Instruction], each: Instruction, op_name: str) -> str:
    """Return the direction of a convolution. A gradient of weights has a window, or sums, larger than its result.

    Layout assignment strips names, so the sizes are looked at first.
    """
    if each.opcode == "dot":
        backward = "transpose(" in op_name
        summed = _summed(body, each)
        return (TO_WEIGHTS if summed >= max(each.shape, default=1) else TO_DATA) if backward else FORWARD
    window = re.search(r"window=\{size=([\dx]+)", each.rest)
    labels = re.search(r"dim_labels=\w+_\w+->(\w+)", each.rest)
    if window and labels:
        sizes = [int(size) for size in window[1].split("x")]
        spatial = [extent for extent, label in zip(each.shape, labels[1], strict=False) if label.isdigit()]
        if math.prod(sizes) > math.prod(spatial):
            return TO_WEIGHTS
    return TO_DATA if "transpose(" in op_name or "lhs_dilate" in each.rest or "_base-dilated" in op_name else FORWARD


def _summed(body: Mapping[str, Instruction], each: Instruction) -> int:
    """Return how many products a matrix product adds up for each element of its result."""
    found = re.search(r"lhs_contracting_dims=\{([\d,]+)\}", each.rest)
    left = body.get(each.operands[0]) if each.operands else None
    if not (found and left):
        return 1
    axes = [int(axis) for axis in found[1].split(",")]
    return math.prod(left.shape[axis] for axis in axes if axis < len(left.shape))


def _instruction(shape: str, opcode: str, rest: str) -> Instruction:
    extents = _SHAPE.search(shape)
    arguments, _, attributes = rest.partition("), ")
    called = re.search(r"(?:calls|to_apply)=%([\w.-]+)", attributes)
    op_name = re.search(r'op_name="((?:[^"\\]|\\.)*)"', attributes)
    frame = re.search(r"stack_frame_id=(\d+)", attributes)
    return Instruction(
        opcode,
        tuple(int(each) for each in extents[1].split(",") if each) if extents else (),
        tuple(_OPERAND.findall(arguments)),
        called[1] if called else "",
        op_name[1] if op_name else "",
        int(frame[1]) if frame else 0,
        attributes,
    )


def _stacks(tables: Mapping[str, Mapping[int, str]]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the functions of each frame, innermost first. A frame names its parent by the number that follows it; 1: none."""
    functions, frames = tables["FunctionNames"], dict[int, tuple[str, int]]()
    places = {key: _numbers(text).get("function_name_id", 0) for key, text in tables["FileLocations"].items()}
    for key, text in tables["StackFrames"].items():
        found = _numbers(text)
        frames[key] = (
            functions.get(places.get(found.get("file_location_id", 0), 0), ""),
            found.get("parent_frame_id", 1),
        )
    for key in frames:
        names, frame, seen = list[str](), key, set[int]()
        while frame in frames and frame not in seen:
            seen.add(frame)
            name, parent = frames[frame]
            names.append(name)
            frame = parent - 1
        yield key, tuple(names)


def _numbers(text: str) -> dict[str, int]:
    return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", text)}
