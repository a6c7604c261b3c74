"""`steelyard run`: plan, measure and report."""

import argparse
import shlex
import sys
from contextlib import closing, nullcontext
from dataclasses import fields, replace
from pathlib import Path

from steelyard.catalog import frameworks
from steelyard.cli.arguments.selecting import typed
from steelyard.cli.commands import selection, waiting
from steelyard.cli.commands.nodes import nodes_of
from steelyard.cli.main import EXIT_INTERRUPTED
from steelyard.cluster.nodes import Choice
from steelyard.errors import UserError, notice
from steelyard.files import paths
from steelyard.files.folders import size_bytes
from steelyard.host import of_another
from steelyard.host.exclusive import StoppedWaiting
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.plan.run_plan import RunPlan
from steelyard.results import addresses, durations, imported, permission, record, run_folders, trials
from steelyard.results.port_record import PortRecord
from steelyard.results.record import RunRecord
from steelyard.results.shared import Shared

NOTHING_NAMED = Options()
LARGE_BYTES = 10**9  # worth a line to the user


def execute(arguments: argparse.Namespace) -> int:
    """Measure, then print the verdicts; the path of the page is the last line.

    The exit code is that of `outcome`.
    """
    waiting.limit_s(arguments)  # contradictions are refused before a cluster, data or a store is accessed
    if arguments.port and (arguments.resume is not None or arguments.on != "local"):
        other = "--resume" if arguments.resume is not None else "--on"
        raise UserError(f"--port begins a run on this machine, so {other} cannot be given with it.")
    root = selection.runs_of(arguments)
    known = None if arguments.resume is None else record.read(run_folders.find(root, arguments.resume))
    with nodes_of(arguments, known.machine if known else "") as chosen:
        return _measured(arguments, root, chosen)


def _measured(arguments: argparse.Namespace, root: Path, nodes: Choice | None) -> int:
    from steelyard import feasibility

    options = selection.options_of(arguments)
    checked = None
    if arguments.port:
        options, checked = selection.of_port(arguments, options)
    if arguments.store:
        addresses.check(arguments.store)
    if arguments.if_changed and (arguments.resume is not None or arguments.dry_run):
        raise UserError("--if-changed decides whether to start a new run, so it takes neither --resume nor --dry-run.")
    if arguments.if_changed and nodes:
        raise UserError("--if-changed compares runs of this machine, so it cannot be used with the nodes of a cluster.")
    with of_another(nodes.resources) if nodes else nullcontext():
        if arguments.resume is None:
            folder, (plan, which) = None, feasibility.planned(options)
        else:
            folder, plan = _resumed(options, root, arguments.resume, nodes)
            which = ""
            feasibility.check(plan)
    if which and not arguments.json:
        print(which)
    if arguments.dry_run:
        from steelyard.cli import dry_run

        dry_run.show(plan, arguments.json, nodes)
        return 0
    unchanged = arguments.if_changed and _is_unchanged(arguments, plan, root)
    code = 0 if unchanged else carry_out(arguments, plan, root, folder, nodes, checked)
    if arguments.store and code != EXIT_INTERRUPTED:
        _share(root, arguments.store)
    return code


def _typed(arguments: argparse.Namespace) -> list[str]:
    """Return the arguments that repeat the run; the folder of a port is absolute, so that they can be typed anywhere."""
    if not getattr(arguments, "port", None):  # other commands carry out plans, too
        return sys.argv[1:]
    whole = str(Path(arguments.port).expanduser().absolute())
    rest = iter(sys.argv[1:])
    words = list[str]()
    for word in rest:
        if word == "--port":
            words += [word, whole]
            next(rest, None)
        else:
            words += ["--port", whole] if word.startswith("--port=") else [word]
    return words


def _share(root: Path, url: str) -> None:
    """Bring a shared store up to date with the folder of runs. If the server cannot be reached, say so; no result changes."""
    try:
        with Shared(url) as store:
            done = store.push(root)
    except UserError as error:
        notice(str(error))
        return
    for sentence in done.left_out:
        notice(sentence)
    notice(
        f"{len(done.stored)} {'run' if len(done.stored) == 1 else 'runs'} added to the store {addresses.shown(url)}."
    )


def _is_unchanged(arguments: argparse.Namespace, plan: RunPlan, root: Path) -> bool:
    """Report what has changed since the plan was last carried out. Return whether nothing has."""
    from steelyard.measure import unchanged

    selection.check_cache()
    with closing(selection.screen_of(arguments)) as screen:
        since = unchanged.since_last(plan, root, screen)
    if since.changed:
        notice(since.changed)
    elif arguments.json:
        selection.print_json({"unchanged_since": since.run, "folder": root / since.run})
    else:
        print(f"Nothing that could move a number has changed since run {since.run}, so nothing was measured.")
    return not since.changed


def carry_out(
    arguments: argparse.Namespace,
    plan: RunPlan,
    root: Path,
    folder: Path | None = None,
    nodes: Choice | None = None,
    checked: PortRecord | None = None,
) -> int:
    """Carry out a plan, in a new folder or in the folder of a run to continue, and print its result. Return the exit code.

    `nodes`: the nodes of a cluster that measure instead of this machine. `checked`: the record of a port's check, which the run
    keeps.
    """
    limit_s = waiting.limit_s(arguments)
    selection.check_cache()
    with nullcontext(folder) if folder else selection.begun(plan, root, plan.study.name, _typed(arguments)) as where:
        selection.keep(checked, where)
        return _carried_out(arguments, plan, where, nodes, limit_s)


def _carried_out(
    arguments: argparse.Namespace, plan: RunPlan, folder: Path, nodes: Choice | None, limit_s: float
) -> int:
    from steelyard import analysis, stages
    from steelyard.cli import outcome
    from steelyard.report import as_json, terminal

    try:
        with closing(selection.screen_of(arguments, plan)) as screen:
            page = stages.run(plan, folder, screen, nodes, limit_s)
    except StoppedWaiting:  # nothing was done, so there is nothing to continue
        raise
    except KeyboardInterrupt:
        where = f" --on {shlex.quote(arguments.on)}" if nodes else ""
        print(
            "steelyard: stopped. The results of finished processes are stored. To continue: "
            f"steelyard run --resume {paths.named(folder)}{where}",
            file=sys.stderr,
        )
        print(_kept(folder), end="", file=sys.stderr)
        return EXIT_INTERRUPTED
    found = analysis.view(folder)
    (as_json if arguments.json else terminal).show(found)
    if not arguments.json:
        print(durations.sentence(record.read(folder).seconds))
        print(page)
    code, sentence = outcome.of_run(found)
    if sentence:
        notice(sentence)
    return code


def _kept(folder: Path) -> str:
    """Return a line about the tensors that a stopped run keeps, if they are large; otherwise an empty text."""
    from steelyard.certificates import dumps

    kept = sum(map(size_bytes, dumps.below(folder)))
    if kept < LARGE_BYTES:
        return ""
    return (
        f"Tensors of unfinished certificates take {kept / 1e9:,.1f} GB until then. "
        f"To delete them with the run: steelyard runs remove {paths.named(folder)}\n"
    )


def _resumed(asked: Options, root: Path, name: str, nodes: Choice | None) -> tuple[Path, RunPlan]:
    """Return the folder of the run to continue and its plan as recorded, with the options that may change."""
    _check_nothing_else(asked)
    folder = run_folders.find(root, name)
    known = continuable(folder, asked, fingerprint=nodes.facts.fingerprint if nodes else "")
    options = known.plan.options
    minutes = options.minutes if asked.minutes is None else asked.minutes
    return folder, replace(known.plan, options=replace(options, silence_s=asked.silence_s, minutes=minutes))


def _check_nothing_else(asked: Options) -> None:
    """Reject options that a continued run would ignore. Two options may change, and three name the foreign code that may run."""
    plain = Options(
        minutes=asked.minutes,
        silence_s=asked.silence_s,
        workload_folders=asked.workload_folders,
        framework_folders=asked.framework_folders,
        external=asked.external,
    )
    given = [each.name for each in fields(Options) if getattr(asked, each.name) != getattr(plain, each.name)]
    if given:
        raise UserError(
            f"--resume continues a run with the options it was started with, so {', '.join(map(typed, given))} cannot be "
            "given with it; --minutes and --silence can."
        )


def continuable(
    folder: Path, named: Options = NOTHING_NAMED, done: str = "continued", fingerprint: str = ""
) -> RunRecord:
    """Return the record of a run that can be extended, with the folders of this installation.

    UserError: further processes would have other code, workloads or machines, or execute code that this user has not allowed.
    `named`: the folders and interpreters that the user names again. `done`: the verb for the message. `fingerprint`: of
    the machine that would measure; empty: of this one.
    """
    known = record.read(folder)
    known = replace(known, plan=resolve.here(known.plan))
    # Nothing that the record names is read before permission is checked.
    _refuse(_other_place(folder, known, fingerprint), done)
    permission.check(folder.name, known, named)
    frameworks.use(known.plan.options.framework_folders)
    _refuse(_other_files(folder, known), done)
    return known


def _refuse(reason: str, done: str) -> None:
    if reason:
        raise UserError(f"{reason}, so it cannot be {done}. Start a new run.")


def _other_files(folder: Path, known: RunRecord) -> str:
    """Return which files of a run have changed; empty if none has."""
    if changed := resolve.changed_files(known.plan):
        return f"The files of {', '.join(changed)} have changed since run {folder.name} was started"
    if not known.nodes and (path := imported.changed(imported.of_run(folder))):
        return f"{path}, which its processes imported, has changed since run {folder.name} was started"
    return ""


def _other_place(folder: Path, known: RunRecord, fingerprint: str) -> str:
    """Return whether a run was measured with other code or on another machine; empty if neither."""
    from steelyard import host
    from steelyard.measure.launch import worker_hash

    name = folder.name
    if known.worker_hash != worker_hash():
        return f"Run {name} was started with different measuring code"
    if not known.machine and any((folder / trials.FOLDER).glob("*")):
        return f"Run {name} does not say on which machine it was measured"
    if known.machine and known.machine != (fingerprint or host.describe().fingerprint()):
        if known.nodes:
            reason = f"Run {name} was measured on nodes of a cluster, which this machine does not equal"
            raise UserError(f"{reason}. Name the cluster: steelyard run --resume {name} --on ray")
        return f"Run {name} was started on another machine, or this machine has changed"
    return ""
