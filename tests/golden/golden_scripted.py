"""Records written by hand: the real recorder with scripted times. A function for each kind writes its runs below `root/runs`."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest import mock

from recorded import MACHINE, Script, options, write_run
from recorded_profiles import write_profile
from recorded_trials import write_graph
from test_graph_page import RULES as GRAPH_RULES
from test_graph_page import STAGES, WANTED

from steelyard.host import links
from steelyard.plan import resolve, spreading
from steelyard.plan.options import Options
from steelyard.results import communication as exchanged
from steelyard.results import record
from steelyard_worker import protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


CREATED = "2026-01-02T03:04:05+00:00"
FIXED = {"created": CREATED, "identity": "0011223344556677", "allowed": ""}
QUICK = {"rounds": 3}
PAIR = {"fake": Script(10.0, **QUICK), "dummy": Script(12.0, **QUICK)}
ONE_INPUT = ("pipeline",)


def written(root: Path, name: str, scripts: dict[str, Script], wanted: Options | None = None, **more: Any) -> Path:
    """Write a run under a name; returns its folder."""
    folder = write_run(root / "made" / name, scripts, wanted, **{"sources": ONE_INPUT, **FIXED, **more})
    (root / "runs").mkdir(exist_ok=True)
    moved = folder.rename(root / "runs" / name)
    shutil.rmtree(root / "made")
    return moved


@contextmanager
def many_cores() -> Iterator[None]:
    with mock.patch.object(spreading, "usable_cores", lambda: 8), mock.patch.object(links, "obstacle", lambda: ""):
        yield


def _lines(path: Path, change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
    """Change every line of a file of JSON lines; a line that becomes None is left out."""
    known = [change(json.loads(line)) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(each) + "\n" for each in known if each is not None))


def _json(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    raw = json.loads(path.read_text())
    change(raw)
    path.write_text(json.dumps(raw, indent=1))


def training(root: Path) -> None:
    """Fake is faster than Dummy by a fifth, on both inputs; a spike, memory by phase, a first step that takes long."""
    phases = {
        "import": 100 * 2**20,
        "build": 150 * 2**20,
        "first-step": 280 * 2**20,
        "warm-up": 300 * 2**20,
        "counted": 310 * 2**20,
    }
    scripts = {
        "fake": Script(10.0, memory=phases, first_step_ms=900.0),
        "dummy": Script(12.0, spike=4.0, memory={**phases, "counted": 400 * 2**20}, warnings=("no-steady-state",)),
    }
    written(root, "training", scripts, sources=("pipeline", "cached"))


def inference(root: Path) -> None:
    """The forward pass alone, with latencies."""
    scripts = {"fake": Script(10.0, first_step_ms=900.0, **QUICK), "dummy": Script(12.0, **QUICK)}
    written(root, "inference", scripts, options(tasks=("inference",)), sources=("pipeline", "cached"))


def sweep(root: Path) -> None:
    """Two values of a setting in two frameworks, and two batches."""
    scripts = {
        "batch=16/fake/scripted,noise=0.5": Script(15.0, **QUICK),
        "batch=16/fake": Script(10.0, **QUICK),
        "batch=16/dummy/scripted,noise=0.5": Script(8.0, **QUICK),
        "batch=16/dummy": Script(16.0, **QUICK),
        "noise=0.5": Script(30.0, process_scatter=0.05, **QUICK),
        "batch=64": Script(29.0, process_scatter=0.05, **QUICK),
    }
    written(root, "sweep", scripts, options(knobs=("noise=0.0,0.5",), batches=(16, 64)))


def largest_batch(root: Path) -> None:
    """The largest batch within a limit of memory, by one search of each contender."""
    scripts = {"fake": Script(10.0, rounds=1), "dummy": Script(12.0, rounds=1)}
    written(
        root,
        "largest-batch",
        scripts,
        options(knobs=("noise=0.0,0.5",), protocol="largest-batch:3", memory_limits=("2 GB",)),
    )


def largest_batches(root: Path) -> None:
    """The largest batch by three searches of each contender, which gives intervals."""
    written(root, "largest-batches", PAIR, options(protocol="largest-batch:3", memory_limits=("2 GB",)))


def _ranks_recorded(folder: Path) -> None:
    """Let every other rank record what the first one did."""
    for home in (folder / "trials").iterdir():
        parts = json.loads((home / "job.json").read_text())["case"]["strategy"].partition(":")[2].partition("@")[0]
        for rank in range(1, int(parts or 1)) if (home / protocol.SAMPLES).exists() else ():
            (home / f"rank{rank}").mkdir()
            shutil.copy(home / protocol.SAMPLES, home / f"rank{rank}" / protocol.SAMPLES)
            kept = [
                each
                for each in (home / protocol.EVENTS).read_text().splitlines(keepends=True)
                if '"evaluated"' not in each
            ]
            (home / f"rank{rank}" / protocol.EVENTS).write_text("".join(kept))


def _counted_bytes(folder: Path, sent: dict[str, int]) -> None:
    """Record what the connections of every rank carried, by strategy, bytes of a step."""
    for path in folder.glob("trials/*/**/events.jsonl"):
        bytes_sent = next((sent[name] for name in sent if name in str(path.relative_to(folder))), None)
        if bytes_sent is not None:
            _lines(path, lambda line, count=bytes_sent: _with_bytes(line, count))


def _with_bytes(line: dict[str, Any], count: int) -> dict[str, Any]:
    if line["event"] == "samples":
        line |= {"sent_bytes": count * line["steps"], "received_bytes": count * line["steps"] // 2}
    return line


def _all_reduce(folder: Path, strategy: str, *milliseconds: float) -> None:
    """Write the measurement of an all-reduce by itself, on two ranks."""
    variant = next(each for each in record.read(folder).plan.variants if each.case.strategy == strategy)
    home = exchanged.folder_of(folder, variant.file_name)
    (home / "rank1").mkdir(parents=True)
    job = next(
        path
        for path in folder.glob("trials/*/job.json")
        if json.loads(path.read_text())["case"]["strategy"] == strategy
    )
    shutil.copy(job, home / "job.json")
    lines = [
        {
            "event": "all-reduce",
            "collective": "scripted mean",
            "phase": "counted",
            "bytes": 108,
            "processes": 2,
            "calls": 10,
            "elapsed_ns": round(1e7 * each),
            "sent_bytes": 240,
        }
        for each in milliseconds
    ]
    text = "".join(
        json.dumps({"v": protocol.VERSION, "t_ns": 0, **each}) + "\n" for each in [*lines, {"event": "done"}]
    )
    for rank in (home, home / "rank1"):
        (rank / protocol.EVENTS).write_text(text)


def strategies(root: Path) -> None:
    """One process, two and four that exchange gradients, and two that exchange nothing; two batches, for weak scaling."""
    scripts = {
        "batch=16/fake/scripted,strategy=single": Script(10.0, **QUICK),
        "batch=16/fake/scripted,strategy=copies:2": Script(6.0, **QUICK),
        "batch=16/fake/scripted,strategy=copies:4": Script(4.5, **QUICK),
        "batch=16/fake/scripted,strategy=alone": Script(5.4, passed=None, **QUICK),
        "strategy=single": Script(20.0, **QUICK),
        "strategy=copies:2": Script(10.5, **QUICK),
        "strategy=copies:4": Script(7.0, failure=("out-of-memory", "Rank 1 of 4: it needs more."), rounds=0),
        "strategy=alone": Script(9.0, passed=None, **QUICK),
    }
    wanted = options(
        frameworks=("fake",), strategies=("single:1", "copies:2", "copies:4", "alone:2"), threads=(1,), batches=(16, 32)
    )
    with many_cores():
        folder = written(root, "strategies", scripts, wanted)
    _ranks_recorded(folder)
    _counted_bytes(folder, {"copies": 216, "alone": 0})
    _all_reduce(folder, "copies:2", 1, 2, 4)


def link_speed(root: Path) -> None:
    """A training on two hosts by the bandwidth of their link."""
    times = {"single": 15.0, "copies:2@1gbit": 12.0, "copies:2@100mbit": 40.0, "copies:2": 10.0, "alone": 9.0}
    scripts = {name: Script(time, passed=None if name == "alone" else True, **QUICK) for name, time in times.items()}
    wanted = options(
        frameworks=("fake",),
        strategies=("single:1", "copies:2", "copies:2@100mbit", "copies:2@1gbit", "alone:2"),
        threads=(1,),
    )
    with many_cores():
        folder = written(root, "link-speed", scripts, wanted)
    _ranks_recorded(folder)
    _counted_bytes(folder, {"copies": 216})


def profiles(root: Path) -> None:
    """Three contenders, two of them profiled twice; one profile failed."""
    scripts = {
        "step_us=10000": Script(10.0, operations=20, **QUICK),
        "step_us=6000": Script(6.0, operations=10, **QUICK),
        "dummy": Script(12.0, profile_failure=("unsupported", "This framework has no profiler."), **QUICK),
    }
    written(root, "profiles", scripts, options(knobs=("fake.step_us=10000,6000",), profiles=2))


def explained(root: Path) -> None:
    """Profiles of single processes with different classes, one of them slowed down by the profiler, one beside other programs."""
    scripts = {
        "step_us=10000": Script(10.0, **QUICK),
        "step_us=6000": Script(6.0, **QUICK),
        "dummy": Script(12.0, **QUICK),
    }
    folder = written(root, "explained", scripts, options(knobs=("fake.step_us=10000,6000",)))
    write_profile(folder, "step_us=10000", 6.0, 3.0)
    write_profile(folder, "step_us=6000", 3.5, 1.5, slow_down=1.6)
    write_profile(folder, "dummy", 8.0, 3.0, gap_ms=1.5)


def graphs(root: Path) -> None:
    """The graph of a step before and after its passes, counted by each set of passes; one framework makes no graph."""
    scripts = {"passes=all": Script(10.0, **QUICK), "passes=others": Script(20.0, **QUICK), "pytorch": Script(**QUICK)}
    folder = written(root, "graphs", scripts, WANTED)
    names = {each.name: each.file_name for each in resolve.plan(WANTED).variants}
    write_graph(folder / "graphs" / names["tensorflow/graph,passes=all"], STAGES, GRAPH_RULES)
    write_graph(folder / "graphs" / names["tensorflow/graph,passes=others"], STAGES[:2], GRAPH_RULES)
    write_graph(folder / "graphs" / names["pytorch/eager"], [], GRAPH_RULES, error="Eager PyTorch makes no graph.")


def limits(root: Path) -> None:
    """How close two contenders come to the machine's limits, with meters of energy and the use of a GPU."""
    host = {**MACHINE, "caches": {"L1d": 2**30, "L2": 2**10, "L3": 2**20}, "gpus": ["Test Accelerator"]}
    scripts = {"fake": Script(20.0, **QUICK), "dummy": Script(40.0, **QUICK)}
    folder = written(
        root,
        "limits",
        scripts,
        options(threads=(2,)),
        host=host,
        peak={"float32, 2 threads": {"numpy": 200.0}},
        bandwidth={"2": 10.0},
    )
    _json(folder / record.FILE, _with_work)
    for path in folder.glob("trials/*/events.jsonl"):
        _lines(path, _metered)


def _with_work(raw: dict[str, Any]) -> None:
    for group in raw["plan"]["groups"]:
        group["training_flops"] = 10**9 // 16
        group["traffic"] = {"fixed": 10**8, "sample": 0, "held_fixed": 5 * 10**7, "held_sample": 0}


def _metered(line: dict[str, Any]) -> dict[str, Any]:
    if line["event"] == "samples" and line["phase"] == "counted":
        line |= {"energy_uj": {"package-0": 25 * 10**6, "package-0 dram": 25 * 10**5}, "gpu_percent": 85}
    return line


def job_length(root: Path) -> None:
    """What starts at once and is slow, what compiles and saves time, and what compiles and saves nothing."""
    exact = {"scatter": 0.0, "process_scatter": 0.0, **QUICK}
    scripts = {
        "step_us=10000": Script(10.0, first_step_ms=10.0, **exact),
        "step_us=6000": Script(6.0, first_step_ms=2006.0, **exact),
        "dummy": Script(12.0, first_step_ms=1012.0, **exact),
    }
    written(root, "job-length", scripts, options(knobs=("fake.step_us=10000,6000", "dummy.step_us=12000")))


def many(root: Path) -> None:
    """Sixteen contenders: more pairs than a person reads, some of them not told apart."""
    steps = [10_000 + 400 * place for place in range(8)]
    scripts = {
        f"{name}/scripted,step_us={us}": Script(us / 1000 + extra, process_scatter=0.02, **QUICK)
        for name, extra in (("fake", 0.0), ("dummy", 0.1))
        for us in steps
    }
    written(root, "many", scripts, options(knobs=(f"step_us={','.join(map(str, steps))}",)))


def left_out(root: Path) -> None:
    """Contenders that are in no verdict: rejected, not certified, failed, wrong on purpose, above the peak, without an environment."""
    names = {place: f"step_us={us}" for place, us in enumerate((10000, 11000, 12000, 13000, 14000, 15000))}
    scripts = {
        f"fake/scripted,{names[0]}": Script(10.0, asynchronous=True, **QUICK),
        f"fake/scripted,{names[1]}": Script(
            8.0, passed=False, sentence="head.bias after 1 step is off by 3.1e-02.", **QUICK
        ),
        f"fake/scripted,{names[2]}": Script(9.0, passed=None, **QUICK),
        f"fake/scripted,{names[3]}": Script(rounds=0, failure=("out-of-memory", "It needs more memory than there is.")),
        f"fake/scripted,{names[4]}": Script(5.0, **QUICK),
        f"fake/scripted,{names[5]}": Script(1.0, **QUICK),
        "dummy/scripted,step_us=10000": Script(12.0, warnings=("no-steady-state",), **QUICK),
        "dummy": Script(13.0, **QUICK),
    }
    variants = ",".join(name.partition("=")[2] for name in names.values())
    planned = options(frameworks=("fake", "dummy"), knobs=(f"fake.step_us={variants}", "dummy.step_us=10000,11000"))
    folder = written(
        root,
        "left-out",
        scripts,
        planned,
        above_peak={"line:small/fake/scripted,step_us=15000": "It would need 9 times the arithmetic peak."},
        fewer_multiplications={
            "line:small/dummy/scripted,step_us=10000": "That is possible only with convolutions that multiply less often."
        },
    )
    proofs = record.read_certificates(folder)
    (wrong,) = [each.case.id for each in record.read(folder).plan.variants if names[4] in each.key]
    proofs[wrong] = {
        "passed": False,
        "sentence": "Wrong on purpose: the loss is a sum, as in that program.",
        "on_purpose": "wrong on purpose",
    }
    (folder / record.CERTIFICATES).write_text(json.dumps(proofs))


def retired(root: Path) -> None:
    """The faster framework has no new releases; the other runs networks that it exports; and it has a condition of its own."""
    folder = written(root, "retired", PAIR)
    plan = record.read(folder).plan
    facts = {
        **plan.frameworks,
        "fake": replace(
            plan.frameworks["fake"],
            maintained=False,
            maintained_source="https://example.org/retired",
            exported_to=("onnxruntime",),
        ),
    }
    record.update(folder, plan=replace(plan, frameworks=facts))


def unavailable(root: Path) -> None:
    """An interrupted run of which one environment could not be created, and another run used the machine."""
    written(
        root,
        "unavailable",
        PAIR,
        unavailable={"dummy": "The interpreter ended with 1 (no matching distribution)."},
        state="running",
        shared_machine=True,
    )


def alone(root: Path) -> None:
    """One contender with one process: nothing to compare."""
    written(root, "alone", {"fake": Script(10.0, rounds=1)})


def nothing(root: Path) -> None:
    """Every process failed."""
    failed = Script(rounds=0, failure=("crash", "It broke."))
    written(root, "nothing", {"fake": failed, "dummy": failed})


def disturbed(root: Path) -> None:
    """Rounds on nodes of a cluster: one was lost, one was disturbed and counts, one steals time."""
    folder = written(
        root,
        "disturbed",
        {"fake": Script(10.0, process_scatter=0.1), "dummy": Script(12.0)},
        nodes=("node-a", "node-b"),
        left_out=("node-c: it has another processor.",),
        reused={"line:small": {"run": "20260101-000000-earlier", "created": "2026-01-01T00:00:00+00:00"}},
    )
    notes = [json.loads(line) for line in (folder / record.ROUNDS).read_text().splitlines()]
    for place, note in enumerate(notes):
        note["node"], note["beside"] = ("node-a", "node-b")[place % 2], []
    notes[-1] |= {
        "reasons": ["other processes used 1.00 cores", "12.5 MiB of memory were swapped"],
        "severity": 3.0,
        "beside": ["node-a"],
    }
    lost = {**notes[0], "kept": False, "reasons": ["the node was lost"], "host_noise": {}, "attempt": 7}
    (folder / record.ROUNDS).write_text("".join(json.dumps(each) + "\n" for each in [*notes, lost]))


def older(root: Path) -> None:
    """A record without the fields that older versions did not write."""
    folder = written(root, "older", PAIR)
    optional = (
        "bandwidth",
        "fewer_multiplications",
        "reused",
        "shared_machine",
        "nodes",
        "left_out",
        "identity",
        "allowed",
        "seconds",
    )
    _json(folder / record.FILE, lambda raw: [raw.pop(name, None) for name in optional])
    for path in folder.glob("trials/*/events.jsonl"):
        _lines(path, _as_before)


def _as_before(line: dict[str, Any]) -> dict[str, Any] | None:
    for name in ("energy_uj", "gpu_percent", "cpu_ns", "sent_bytes", "received_bytes", "phases", "since_spawn_ns"):
        line.pop(name, None)
    return line


def damaged(root: Path) -> None:
    """Files that are missing, cut or altered: processes and notes are left out, and the record is read."""
    folder = written(root, "damaged", {"fake": Script(10.0), "dummy": Script(12.0)})
    fake, dummy = (sorted(folder.glob(f"trials/*{name}*")) for name in ("fake", "dummy"))
    (fake[0] / "job.json").unlink()
    (fake[1] / protocol.SAMPLES).write_bytes((fake[1] / protocol.SAMPLES).read_bytes()[:-5])
    events = (dummy[0] / protocol.EVENTS).read_text()
    (dummy[0] / protocol.EVENTS).write_text(events[: len(events) // 2])
    (dummy[1] / "job.json").write_text("{")
    rounds = (folder / record.ROUNDS).read_text()
    (folder / record.ROUNDS).write_text(rounds + '{"group": 7}\n{"group"')


def unreadable(root: Path) -> None:
    """Runs that cannot be used: an older and a newer format, cut, of another program, with damaged certificates."""
    for name in ("a-older", "b-newer", "c-cut", "d-foreign", "e-certificates", "f-search"):
        written(root, name, {"fake": Script(10.0, rounds=1)})
    runs = root / "runs"
    _json(runs / "a-older" / record.FILE, lambda raw: raw.update(format=2))
    _json(runs / "b-newer" / record.FILE, lambda raw: raw.update(format=99))
    text = (runs / "c-cut" / record.FILE).read_text()
    (runs / "c-cut" / record.FILE).write_text(text[: len(text) // 2])
    (runs / "d-foreign" / record.FILE).write_text('{"name": "another program", "results": [1, 2]}')
    (runs / "e-certificates" / record.CERTIFICATES).write_text('{"0123": {"passed": "yes"}}')
    (runs / "f-search" / "search.json").write_text("{")


def close(root: Path) -> None:
    """Contenders that are practically the same, and some that these rounds do not tell apart."""
    scripts = {
        "step_us=10000": Script(10.0, process_scatter=0.02, **QUICK),
        "step_us=10200": Script(10.2, process_scatter=0.03, **QUICK),
        "step_us=10300": Script(10.3, process_scatter=0.02, **QUICK),
        "dummy": Script(10.1, process_scatter=0.002, **QUICK),
    }
    written(root, "close", scripts, options(knobs=("fake.step_us=10000,10200,10300",)))


def equal(root: Path) -> None:
    """Two contenders that are practically the same, in five rounds."""
    written(root, "equal", {"fake": Script(10.0), "dummy": Script(10.01)})


def uncertified(root: Path) -> None:
    """A run without certificates: there is nothing to choose."""
    scripts = {name: replace(script, passed=None) for name, script in PAIR.items()}
    written(root, "uncertified", scripts, options(certify=False))


def searches(root: Path) -> None:
    """Searches of the largest batch that do not tell two of three contenders apart."""
    scripts = {name: Script(10.0, rounds=1) for name in ("step_us=10000", "step_us=6000", "dummy")}
    folder = written(
        root,
        "searches",
        scripts,
        options(knobs=("fake.step_us=10000,6000",), protocol="largest-batch:3", memory_limits=("2 GB",)),
    )
    for path in folder.glob("trials/*step_us=6000*/job.json"):
        _json(path, lambda raw: raw["schedule"].update(batch=94, failed_batch=100))


def seeds(root: Path) -> None:
    """A study with two seeds and one process of each contender: no verdict, and nothing that was published is held against it."""
    wanted = Options(
        study="time-to-accuracy", size="C", workloads=("resnet18:digits",), seeds=(1, 2), frameworks=("pytorch", "jax")
    )
    written(root, "seeds", {"pytorch": Script(10.0, rounds=1), "jax": Script(9.0, rounds=1)}, wanted)


def before_and_after(root: Path) -> None:
    """Two runs with other packages, of which one class of operations moved; and a third that cannot be compared."""
    packages = {"version": "1.2.3", "python": "python", "python_version": "3.11.7", "external": True}
    for name, step_ms, numpy, threads in (("before", 10.0, "2.0.0", 2), ("after", 12.0, "2.1.0", 4)):
        scripts = {"fake": Script(step_ms, applied={"threads": threads}, **QUICK), "dummy": Script(11.0, **QUICK)}
        made = {each: {**packages, "packages": {"numpy": numpy, "line": "1.0"}} for each in scripts}
        folder = written(root, name, scripts, environments=made)
        write_profile(folder, "fake", 6.0 if name == "before" else 8.0, 3.0)
    written(root, "inferred", PAIR, options(tasks=("inference",)))
    elsewhere = written(
        root,
        "elsewhere",
        {"fake": Script(9.0, **QUICK), "dummy": Script(11.0, passed=False, **QUICK)},
        machine="f" * 16,
    )
    write_profile(elsewhere, "fake", 5.0, 3.0, slow_down=1.6)
    _json(elsewhere / record.FILE, lambda raw: raw.update(method=raw["method"] - 1))
    noisy = {
        "fake": Script(10.0, process_scatter=0.05, **QUICK),
        "dummy": Script(11.0, failure=("crash", "It broke."), rounds=0),
    }
    write_profile(written(root, "noisy", noisy), "fake", 5.0, 3.0)


def machines(root: Path) -> None:
    """The same plan on three machines, of which the last has the other order; one of them has a rejected contender."""
    for name, fake, dummy in (("aaaa", 10.0, 12.0), ("bbbb", 20.0, 30.0), ("cccc", 12.0, 10.0)):
        scripts = {"fake": Script(fake, **QUICK), "dummy": Script(dummy, **QUICK)}
        written(root, f"run-{name}", scripts, machine=name * 4, host={**MACHINE, "cpu_model": f"Processor {name}"})
    rejected = {"fake": Script(10.0, passed=False, **QUICK), "dummy": Script(12.0, **QUICK)}
    host = {**MACHINE, "cpu_model": "Processor dddd"}
    written(root, "run-dddd", rejected, options(threads=(1,)), machine="dddd" * 4, host=host)


def history(root: Path) -> None:
    """Twelve nights: Fake became slower by a tenth with another package, Dummy did not change."""
    for night in range(12):
        late = night >= 7
        scripts = {"fake": Script(11.0 if late else 10.0, **QUICK), "dummy": Script(12.0, **QUICK)}
        made = {
            each: {
                "version": "1.2.3",
                "python": "python",
                "python_version": "3.11.7",
                "external": True,
                "packages": {"numpy": "2.1.0" if late else "2.0.0"},
            }
            for each in scripts
        }
        created = f"2026-01-{night + 1:02d}T02:00:00+00:00"
        written(root, f"night-{night + 1:02d}", scripts, environments=made, created=created)


MAKERS: dict[str, Callable[[Path], None]] = {
    each.__name__.replace("_", "-"): each
    for each in (
        training,
        inference,
        sweep,
        largest_batch,
        largest_batches,
        strategies,
        link_speed,
        profiles,
        explained,
        graphs,
        limits,
        job_length,
        many,
        left_out,
        retired,
        unavailable,
        alone,
        nothing,
        disturbed,
        older,
        damaged,
        unreadable,
        close,
        equal,
        uncertified,
        searches,
        seeds,
        before_and_after,
        machines,
        history,
    )
}
