"""What oneDNN computed in a certificate's process, and in which precision: its own log, at the batch that is timed.

Libraries choose kernels by size. oneDNN, for example, computes dense layers in bfloat16 only from some batch on, where it was
allowed to; the small batch at which precision is judged does not show it. The log names the types of every kernel, and the
precision that was allowed inside it, whether or not the processor has such a kernel.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from steelyard.files import atomic
from steelyard_worker import protocol

# oneDNN 3 reads the first, oneDNN 2 the second. Other libraries ignore both.
VARIABLES = {"ONEDNN_VERBOSE": "1", "DNNL_VERBOSE": "1"}
PREFIXES = (b"onednn_verbose", b"dnnl_verbose", b"mkldnn_verbose")
COUNTS = "kernels.json"
# Primitive of oneDNN -> what it computes.
PRODUCT, CONVOLUTION, RECURRENT = "matrix products", "convolutions", "recurrent layers"
KINDS = {
    "matmul": PRODUCT,
    "inner_product": PRODUCT,
    "gemm_api": PRODUCT,
    "gemm": PRODUCT,
    "brgemm": PRODUCT,
    "convolution": CONVOLUTION,
    "deconvolution": CONVOLUTION,
    "rnn": RECURRENT,
}
# Type or allowed precision in the log -> its name.
NAMES = {
    "bf16": "bfloat16",
    "f16": "float16",
    "tf32": "TF32",
    "f8_e5m2": "float8",
    "f8_e4m3": "float8",
    "s8": "int8",
    "u8": "int8",
    "any": "any precision",
}
FULL = "float32"
# A memory descriptor begins with its name and its type: `src:f32:a:blocked:...` since oneDNN 3, `src_f32::blocked:...` before.
TYPE = re.compile(r"(?:^| )[a-z_]+?[:_](bf16|f16|tf32|f8_e5m2|f8_e4m3|s8|u8|f64)(?=:)")
# `attr-fpmath:bf16`, in oneDNN 2 `attr-fpmath_mode:fpmath_mode_bf16`.
ALLOWED = re.compile(r"attr-fpmath(?:_mode)?:(?:fpmath_mode_)?([a-z0-9_]+)")
STRICT = "strict"


def condense(folder: Path) -> None:
    """Count the kernels in the log of a process that has ended, and take oneDNN's lines, of which there are many, out of it."""
    log = folder / protocol.LOG
    if not log.is_file():
        return
    counts: Counter[str] = Counter()
    shorter = log.with_suffix(".shorter")
    begun = False
    with log.open("rb") as lines, shorter.open("wb") as kept:
        for line in lines:
            if not line.startswith(PREFIXES):
                kept.write(line)
                begun = begun or line.startswith(protocol.CERTIFIED_BEGINS.encode())
            elif begun:
                counts.update(_kernel(line.decode(errors="replace")))
    shorter.replace(log)
    atomic.write_text(folder / COUNTS, json.dumps(counts))


def _kernel(line: str) -> Iterator[str]:
    """Yield what a line of oneDNN's log computed, such as "convolutions in float32"; nothing for another line or kind."""
    fields = line.strip().split(",")
    if "exec" not in fields:
        return
    place = fields.index("exec")
    if kind := KINDS.get("".join(fields[place + 2 : place + 3])):
        yield f"{kind} in {precision(','.join(fields[place + 5 :]))}"


def precision(description: str) -> str:
    """Return the lowest precision in the memory descriptors and attributes of a kernel, by name."""
    allowed = ALLOWED.search(description)
    if allowed and allowed[1] != STRICT:
        return NAMES.get(allowed[1], allowed[1])
    types = TYPE.findall(description.partition(",")[0])
    low = [each for each in types if each != "f64"]
    if low:
        return NAMES[low[0]]
    return "float64" if types else FULL


def read(folder: Path) -> dict[str, int]:
    """Return how often the process of this folder ran what in which precision, such as {"convolutions in float32": 60}.

    Empty where its libraries wrote no log: they have no oneDNN, or a build of it without one, or oneDNN ran none of these.
    """
    try:
        found = json.loads((folder / COUNTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    counts = found if isinstance(found, dict) else {}
    return {name: count for name, count in counts.items() if isinstance(count, int)}


def lower(counts: Mapping[str, int], case_precision: str) -> str:
    """Return in a sentence which kernels of a float32 case ran in a lower precision; empty where none did."""
    if case_precision != FULL:
        return ""
    parts = []
    for kind in (PRODUCT, CONVOLUTION, RECURRENT):
        of_kind = {name.partition(" in ")[2]: count for name, count in counts.items() if name.startswith(f"{kind} in ")}
        low = {name: count for name, count in of_kind.items() if name not in (FULL, "float64")}
        if low:
            names = _listed(sorted(low))
            parts.append(f"{sum(low.values()):,} of {sum(of_kind.values()):,} {kind} ran in {names}")
    return f"At the batch that is timed, {_listed(parts)} (oneDNN's log), so this is not {FULL}." if parts else ""


def _listed(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last
