"""oneDNN's log at the batch that is timed: kernels of a lower precision reject a float32 certificate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import scripted_certification as scripted

from steelyard.certificates import kernels
from steelyard.certificates.certification import certify
from steelyard_worker import protocol

if TYPE_CHECKING:
    from steelyard_worker.protocol import Job

# As oneDNN 3 writes them, and oneDNN 2; recorded.
CONVOLUTION = (
    "onednn_verbose,v1,primitive,exec,cpu,convolution,jit:avx2,forward_training,src:f32:a:blocked:aBcd8b::f0 "
    "wei:f32:a:blocked:ABcd8b8a::f0 bia:f32:a:blocked:a::f0 dst:f32:a:blocked:aBcd8b::f0,attr-scratchpad:user{},"
    "alg:convolution_direct,mb64_ic8oc8_ih16oh14kh3sh1dh0ph0_iw16ow14kw3sw1dw0pw0,3.77808"
)
OLD_PRODUCT = (
    "dnnl_verbose,exec,cpu,inner_product,x64:gemm:jit,forward_training,src_f32::blocked:ab:f0 wei_f32::blocked:ab:f0 "
    "bia_f32::blocked:a:f0 dst_f32::blocked:ab:f0,{},,mb32ic1568oc64,27.646"
)
PRODUCT = (
    "onednn_verbose,v1,primitive,exec,cpu,matmul,brg_matmul:avx10_1_512_amx,undef,src:{0}::blocked:ab::f0 wei:{0}::blocked:ba::f0 "
    "dst:{0}::blocked:ab::f0,,,64x512:512x512,0.964844"
)
GEMM = "onednn_verbose,v1,primitive,exec,cpu,gemm_api,,undef,src_f32::blocked:ab:f0 wei_f32::blocked:ab:f0 dst_f32::blocked:ab:f0,,,64x8:8x8,42.9"
LSTM = (
    "onednn_verbose,v1,primitive,exec,cpu,rnn,ref,forward_training,src_layer:{0}::blocked:abc::f0 src_iter:{0}::blocked:abcd::f0 "
    "src_iter_c:f32::blocked:abcd::f0 wei_layer:{0}:a:blocked:abcde::f0,attr-scratchpad:user,alg:vanilla_lstm,l1,0.5"
)
OTHERS = (
    "onednn_verbose,v1,primitive,exec,cpu,reorder,jit:blk,undef,src:f32::blocked:ab::f0 dst:bf16::blocked:ab::f0,,,64x8,6.89",
    "onednn_verbose,v1,primitive,create:cache_hit,cpu,matmul,brg,undef,src:bf16::blocked:ab::f0,,,64x8:8x8,1.0",
    "onednn_verbose,v1,info,cpu,isa:Intel AVX2",
    "onednn_verbose,v1,primitive,exec,cpu",
    "some warning, exec, cpu, matmul, of another library, src:bf16:",
)
BEGINS = protocol.CERTIFIED_BEGINS


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))


def counted(folder: Path, *lines: str) -> dict[str, int]:
    (folder / protocol.LOG).write_text("\n".join(lines) + "\n")
    kernels.condense(folder)
    return kernels.read(folder)


@pytest.mark.parametrize(
    ("line", "kernel"),
    [
        (CONVOLUTION.format(""), "convolutions in float32"),
        (CONVOLUTION.format(" attr-fpmath:strict"), "convolutions in float32"),
        (CONVOLUTION.format(" attr-fpmath:bf16"), "convolutions in bfloat16"),
        (CONVOLUTION.format(" attr-fpmath:tf32:true"), "convolutions in TF32"),
        (CONVOLUTION.format(" attr-fpmath:any"), "convolutions in any precision"),
        (OLD_PRODUCT.format(""), "matrix products in float32"),
        (OLD_PRODUCT.format("attr-fpmath_mode:fpmath_mode_bf16 "), "matrix products in bfloat16"),
        (PRODUCT.format("f32"), "matrix products in float32"),
        (PRODUCT.format("bf16"), "matrix products in bfloat16"),
        (PRODUCT.format("f16"), "matrix products in float16"),
        (PRODUCT.format("f64"), "matrix products in float64"),
        (GEMM, "matrix products in float32"),
        (GEMM.replace("wei_f32", "wei_bf16"), "matrix products in bfloat16"),
        (LSTM.format("f32"), "recurrent layers in float32"),
        (LSTM.format("bf16"), "recurrent layers in bfloat16"),
    ],
)
def test_a_kernel_is_counted_with_its_lowest_precision(tmp_path: Path, line: str, kernel: str) -> None:
    assert counted(tmp_path, line, BEGINS, *OTHERS, line, line) == {kernel: 2}


def test_the_many_lines_of_onednn_are_taken_out_of_the_log(tmp_path: Path) -> None:
    counted(tmp_path, "a warning", GEMM, BEGINS, *OTHERS, GEMM, "another")
    assert (tmp_path / protocol.LOG).read_text() == f"a warning\n{BEGINS}\n{OTHERS[-1]}\nanother\n"


def test_without_a_log_nothing_is_known(tmp_path: Path) -> None:
    kernels.condense(tmp_path)
    assert kernels.read(tmp_path) == {}
    (tmp_path / kernels.COUNTS).write_text("[1]")
    assert kernels.read(tmp_path) == {}
    assert kernels.lower({}, "float32") == ""


def test_the_sentence_counts_what_ran_in_a_lower_precision() -> None:
    counts = {"matrix products in float32": 9, "matrix products in bfloat16": 12, "convolutions in float32": 60}
    assert kernels.lower(counts, "float32") == (
        "At the batch that is timed, 12 of 21 matrix products ran in bfloat16 (oneDNN's log), so this is not float32."
    )
    assert kernels.lower(counts | {"convolutions in TF32": 1}, "float32") == (
        "At the batch that is timed, 12 of 21 matrix products ran in bfloat16 and 1 of 61 convolutions ran in TF32 "
        "(oneDNN's log), so this is not float32."
    )
    assert kernels.lower({"matrix products in float32": 9, "convolutions in float64": 2}, "float32") == ""
    assert kernels.lower(counts, "float64") == ""


def logging(*lines: str) -> Any:
    """Return a script in which the candidate `fake` writes these lines into its log, where that is on."""

    def errors(job: Job) -> dict[str, Any]:
        if job.case.framework == "fake" and job.variables.keys() >= kernels.VARIABLES.keys():
            Path(job.folder).mkdir(parents=True, exist_ok=True)
            (Path(job.folder) / protocol.LOG).write_text("\n".join([BEGINS, *lines]) + "\n")
        return {}

    return errors


def test_right_tensors_do_not_certify_kernels_of_a_lower_precision(tmp_path: Path) -> None:
    run = scripted.session(tmp_path, logging(GEMM, PRODUCT.format("bf16"), PRODUCT.format("bf16")))
    found = certify(run)[scripted.ids(run)["fake"]]
    assert not found["passed"]
    assert found["sentence"] == (
        "At the batch that is timed, 2 of 3 matrix products ran in bfloat16 (oneDNN's log), so this is not float32."
    )
    assert found["kernels"] == {"matrix products in bfloat16": 2, "matrix products in float32": 1}


def test_a_certificate_says_which_kernels_were_looked_at(tmp_path: Path) -> None:
    run = scripted.session(tmp_path, logging(GEMM, CONVOLUTION.format("")))
    found = certify(run)
    by_name = {name: found[case_id] for name, case_id in scripted.ids(run).items()}
    assert by_name["fake"]["passed"], by_name["fake"]["sentence"]
    assert by_name["fake"]["kernels"] == {"matrix products in float32": 1, "convolutions in float32": 1}
    assert by_name["dummy"]["kernels"] == {}


def test_only_the_candidates_own_process_writes_the_log(tmp_path: Path) -> None:
    run = scripted.session(tmp_path)
    certify(run)
    on = [job for job in run.started if job.variables.keys() >= kernels.VARIABLES.keys()]
    assert [Path(job.folder).parent.name for job in on] == ["certificates", "certificates"]
    assert all(job.case.settings.precision == "float32" for job in on)
    assert len(on) < len(run.started)


def test_a_process_whose_settings_were_changed_proves_nothing_though_it_saved_tensors(tmp_path: Path) -> None:
    message = "matmul_precision was 'highest' and is 'medium' at the end: the implementation of line changed it."

    def errors(job: Job) -> dict[str, Any]:
        if job.case.framework == "fake" and job.case.settings.precision == "float32":
            changed.append(Path(job.folder))
        return {}

    changed: list[Path] = []
    run = scripted.session(tmp_path, errors)
    write = scripted.write_dumps

    def write_with_error(job: Job, found: Any) -> None:
        write(job, found)
        if Path(job.folder) in changed:
            scripted.write_error(Path(job.folder), "setting", message)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scripted, "write_dumps", write_with_error)
        found = certify(run)[scripted.ids(run)["fake"]]
    assert (found["passed"], found["sentence"]) == (False, message)
    assert json.dumps(found)
