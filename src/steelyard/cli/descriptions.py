"""All commands, and their descriptions in their help. No module is imported here, so that `--help` is fast."""

ABOUT = """\
steelyard compares the speed of deep-learning frameworks on this machine. It runs the same network with the same
weights on the same batches in every framework, proves that the computation is the same (a certificate), times it in
new processes and interleaved rounds, and gives a verdict with an interval.

Start with:   steelyard run            compare all frameworks; takes about ten minutes the first time
              steelyard run --dry-run  show what would be run, and how long it would take
              steelyard doctor         check whether this machine is suitable for measurements
"""


# Command -> summary in one line.
COMMANDS = {
    "run": "measure frameworks and write a report",
    "certify": "prove that frameworks compute the same function",
    "nodes": "show the nodes of a cluster, and whether they are fit to measure on",
    "slurm-script": "print a batch script that measures on the nodes of a SLURM allocation",
    "report": "write the report of a run again",
    "export": "write results as files: CSV, Parquet, Markdown, LaTeX, JSON, plots and others",
    "bundle": "make a folder of a run that can be published",
    "gallery": "make a website of many runs or bundles, of several people and machines",
    "cite": "print how to cite a run (BibTeX)",
    "advise": "say what to choose, by what matters to you",
    "explain": "say where the time of a step goes",
    "compare": "compare two results of a run, or two runs",
    "list": "list frameworks, workloads, presets, studies, strategies, data sets or runs",
    "new": "create a workload of your own",
    "port": "check whether two existing models are the same, and where they part",
    "history": "show results over time, and find what has changed",
    "merge": "put the runs of several machines or people into one folder",
    "runs": "list or remove runs",
    "env": "create, list or remove environments",
    "cache": "show what the cache holds, or remove what nothing uses",
    "doctor": "check whether this machine is suitable for measurements",
}

EXIT_CODES = """
exit codes:
  0    every contender has a result
  1    no contender has one
  2    the command or the machine does not allow it; the message says what to do
  3    some have a result, and at least one was left out: its process failed, it did not compute what was certified,
       its certificate was rejected, or its environment could not be created
  130  stopped with Ctrl-C or SIGTERM
  141  the program that reads the output has ended
"""

DESCRIPTIONS = {
    "run": f"""\
Compare frameworks on this machine. The command creates one isolated environment per framework, prepares the data,
certifies that every framework computes the same function, and measures rounds of new processes until the fastest
framework is told apart from every other one, as is the fastest that is still maintained: 3 to 12 rounds, within the
time limit of the study. It prints a table of verdicts and writes one self-contained HTML page. The last line
printed is the path of that page.

Press Ctrl-C to stop: the results of finished processes are stored, and --resume continues from there.
While another steelyard command measures or certifies on this machine, a run waits and says whose it is; --wait and
--no-wait limit that.
{EXIT_CODES}
examples:
  steelyard run                                                  the study first-look, all frameworks
  steelyard run --workload resnet18:cifar10 --data ~/data        one network at its published size
  steelyard run -f pytorch -f jax                                only these two
  steelyard run -f pytorch --mode pytorch=eager,compiled         two modes of one framework
  steelyard run -f tensorflow -f tensorflow@2.20.0               two versions of one framework
  steelyard run -f pytorch --env pytorch=/opt/venv/bin/python    an interpreter of your own
  steelyard run --protocol fixed:10+200                          10 warm-up steps, 200 counted, as published
  steelyard run --resume latest                                  continue an interrupted run
""",
    "certify": f"""\
Prove that implementations compute the same function; nothing is timed. Outputs, loss, every gradient and every
tensor after five optimizer steps are compared with a float64 reference on which two frameworks agree. If they differ,
the first tensor that differs is named. A certificate is stored and reused until the code, the versions or the
settings behind it change. Here, a result is a certificate.
{EXIT_CODES}""",
    "new": """\
Create a folder with a workload of your own: spec.toml, the description of the network, and one file per framework.
The generated files describe a small working network: certify it first, then replace it step by step. Use
`--workloads DIR` with the other commands to make them find it.

examples:
  steelyard new workload mine -f pytorch -f jax
  steelyard new workload mygpt --like gpt""",
    "port": """\
Compare two existing models, unmodified, such as a network and its port to another framework. Each side is a small Python file
whose model() returns your own object with its checkpoint loaded; it runs in the interpreter of its framework, with your rights.
The tensors of both are mapped to each other by their values, both get the same weights and inputs, and every pair of modules is
compared in order. Where the models part, the page names the place, and the cause where a known one explains it.

exit codes:
  0  equal
  1  different
  2  could not tell, or the command or a side does not allow it; the message says what to do

examples:
  steelyard port new shop/vision -f pytorch -f jax     a folder to fill in: port.toml and one file for each side
  steelyard port check shop/vision
  steelyard port show ~/records/vision                 a record again, also one of somebody else""",
    "report": """\
Write the HTML page of a run again from its stored results and print its table of verdicts. Nothing is measured.""",
    "export": """\
Write the results of a run for other programs, a pull request or a paper. Texts are printed, unless a file is named. Nothing is
measured, and nothing is written into the folder of the run.

formats:
  csv          the tidy table: one row for each process, input and quantity, with everything that decides the value
  parquet      the same with types, for pandas, Polars and DuckDB (needs steelyard[export])
  md           the verdict tables as Markdown, for a pull request or $GITHUB_STEP_SUMMARY
  latex        the verdict tables for a paper (booktabs)
  json         what steelyard report --json prints
  hud          benchmark records of PyTorch HUD
  svg          every plot of the page, as wide as a column of a paper (needs steelyard[plots])
  pdf          the same as PDF
  tensorboard  learning curves and verdict tables as event files (needs steelyard[tensorboard])
  mlflow       a run of MLflow for each contender, in FOLDER/mlflow.db or sqlite:///FILE (needs steelyard[mlflow])

examples:
  steelyard export --format md >> "$GITHUB_STEP_SUMMARY"      the latest run, in a workflow of GitHub
  steelyard export --format parquet -o results.parquet        for pandas
  steelyard export first --format pdf -o figures              the run whose name begins with first
  steelyard export --format mlflow -o sqlite:///results.db    beside the runs that this store has""",
    "bundle": """\
Make a folder with the record of a run that can be published: without names of hosts and users, paths, environment variables and
logs, with a README that says how to repeat it, and with hashes of its files and certificates. `steelyard report FOLDER` works
with it as with the run. What the record cannot tell to be private, such as the name of another machine, is named with --hide.

examples:
  steelyard bundle                                  the latest run, into a folder beside you
  steelyard bundle RUN -o results/mine --hide mars  without the word mars, too""",
    "gallery": """\
Make a static website of all runs and bundles in a folder and in the folders below it: a start page with a row for each run and
network, and the page of every run. Rows of one table have the same method and settings; why others may not be compared is said.
Every run is shown as a bundle would be: without names of hosts and users, and without paths. The folder may come from strangers:
nothing in it is executed, and no link is followed. A run that cannot be shown is named and left out; the exit code is then 1.
Making the site again replaces its pages. Nothing else may be in its folder.

examples:
  steelyard gallery bundles                          the bundles of a group, into bundles-gallery beside you
  steelyard gallery ~/runs /mnt/lab -o public        two folders as one site
  steelyard gallery ~/runs --hide mars --json        without the word mars; what was written, as JSON""",
    "cite": """\
Print an entry for BibTeX: the tool, its version, the run and the machine. CITATION.cff of the project cites the tool alone.""",
    "explain": f"""\
Say where the time of a step goes, and what makes one contender slower than another. Each contender runs once more under its
framework's own profiler, in a process that is in no verdict; operations are put into classes that all frameworks share. The
page of the run gets a section with tables and plots, and names the trace files. Here, a result is a profile.
{EXIT_CODES}
examples:
  steelyard explain                     every contender of the latest run
  steelyard explain pytorch jax         only these two""",
    "advise": """\
Say what to choose, from what a run has measured. Without --for, each goal is answered by itself; with several, their costs are
weighed against each other. Retired frameworks are left out, unless --any is given. The ranking has the probability that each
contender is the best. Where the verdicts of the run do not single one out, none is named, and what would decide is. Nothing is
measured.

With --tune, the modes and knobs of one framework are searched within a time limit: many settings are tried once, the faster half
again, and so on. The fastest that is certified is then measured in new rounds, beside the usual settings and the fastest other
contender of the run, so that the luck of the search is in no result.

goals:
  speed             time per step
  short-jobs        time of a whole job of --steps or --epochs, start included
  memory            peak memory
  energy            energy per step, where the machine has a meter that can be read
  cost              cost per step, at the price of --price
  accuracy-in-time  time of training until the test metric has reached --threshold
  exchange          only what can be exported, as ONNX
  maintained        only frameworks that are still maintained (the default; --any for all)

examples:
  steelyard advise                                       every goal by itself, for the latest run
  steelyard advise --for speed=2 --for memory            speed counts twice as much as memory
  steelyard advise --for short-jobs --steps 1000         what is done first with a thousand steps
  steelyard advise --for cost --price 1.20EUR/h          what is cheapest, on a machine of this price by the hour
  steelyard advise --for speed --any                     the fastest framework, retired or not
  steelyard advise --tune pytorch --minutes 10           are other settings of PyTorch faster?
  steelyard advise --tune jax --knob unroll=1,4,8        only these settings""",
    "compare": """\
Compare two results of one run, or two runs with each other. A result is named as in the table of the run: by its
framework, or in full where the framework alone is not unique. Of two runs, the packages, settings and facts that differ are
listed and, where both runs were explained (`steelyard explain`), the classes of operations that changed.
Runs of different machines, and more than two runs, are shown side by side: every ratio is within one run, and it is said on
how many machines the order of contenders is the same.

examples:
  steelyard compare pytorch jax                     two frameworks in the latest run
  steelyard compare pytorch/eager pytorch/compiled  two modes in the latest run
  steelyard compare 20260101-1200 20260301-0900     two runs: before and after
  steelyard compare RUN RUN RUN --output page.html  runs of three machines, side by side""",
    "list": """\
List frameworks with their modes and knobs, workloads, presets, studies, strategies, data sets, or runs.

examples:
  steelyard list strategies          how each framework spreads a training over devices or processes, and how it cannot
  steelyard list data wmt16-en-de    the files that are read, their formats, and where the official data comes from""",
    "env": """\
Manage the isolated environments, one per framework and version. A run creates the environments it needs; use this
command to create them in advance, to list them, or to remove them and free their disk space.""",
    "nodes": """\
Show the nodes of a Ray cluster: processor, memory, accelerators and load of each, whether it is fit to measure on, and which
run measures there now. Nodes of one fingerprint are equal in everything that decides speed, so their rounds are pooled.""",
    "slurm-script": """\
Print a batch script for SLURM. It starts Ray on the nodes of its allocation, which it asks for exclusively, measures a study
there, and stops Ray. Read it before you submit it: what a site may have to change is marked.

example:
  steelyard slurm-script --nodes 4 --minutes 120 -- mindspore-training --size Q > study.sbatch""",
    "runs": """\
List the runs of this machine, or remove some. A removed run is gone: its raw data cannot be made again.""",
    "history": """\
Show what the runs of a folder, or of a shared store, have measured over time: one line for each contender and case, with the
changes of its level, the days between which each happened, the packages that moved then, and slow creeps. Runs are one line only
with the same case, settings, schedule, method and machine. A page with plots is written; its path is the last line printed.

With --fail-if-slower the exit code is 1 if the newest level of a line is slower than its last stable level before (of at least 8
runs) by more than that share, or has crept up by more, with certainty: the whole interval lies above it. --accept takes the
level of a day as normal, so that nothing before it counts; --since leaves out the runs before a day.

examples:
  steelyard history                                        all studies
  steelyard history first-look --fail-if-slower 5%         as a check after a nightly run
  steelyard history first-look --fail-if-slower 5% --accept 2026-11-01
                                                           the same, after a slow-down that is accepted
  steelyard history first-look --since 2026-11-01          the runs on and after a day""",
    "merge": """\
Put the runs of several machines or people into one folder of runs. A run that several folders hold is kept once, in its latest
state. Two different runs of the same name are both kept: one gets a longer name. The result is the same in any order, and when
it is done again. Damaged runs, and those in progress, are named and left out; the exit code is then 1. Pages are not copied:
`steelyard report RUN` writes them from the record.

examples:
  steelyard merge /mnt/lab/*/runs --runs ~/all-runs            what ten machines have measured
  steelyard merge ~/Downloads/20260101-120000-first-look         one run, into the usual folder""",
    "cache": """\
Show the disk space of the cache: environments, downloads, prepared data, initial weights and certificates. `prune`
removes what nothing uses: environments without a lock file in this version, certificates that this version does not
accept, and data, weights and references that no run names. All of it is made again when it is needed.""",
    "doctor": """\
Check this machine: can environments be created, is the machine quiet enough for measurements, and what is missing for
which mode? With --adapter NAME: check that a framework's adapter keeps its contract, on the smallest workload that it
implements. The exit code is 1 if something is wrong.""",
}
"""Command -> the text below its usage."""
