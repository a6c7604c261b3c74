-- An index of run folders, for SQLite and PostgreSQL. The event files are the primary record; beside them the index can be
-- rebuilt at any time. In PostgreSQL it stands alone, so `files` holds the record itself.
CREATE TABLE IF NOT EXISTS runs (
    id       TEXT PRIMARY KEY,       -- in SQLite the name; in PostgreSQL the identity, as two machines may use one name
    name     TEXT NOT NULL,
    folder   TEXT NOT NULL,
    study    TEXT NOT NULL,
    created  TEXT NOT NULL,
    state    TEXT NOT NULL,          -- running, interrupted, complete
    machine  TEXT NOT NULL,
    method   BIGINT NOT NULL,
    worker_hash  TEXT NOT NULL,      -- of the measuring code
    host         TEXT NOT NULL,      -- JSON: hardware and system of the machine
    environments TEXT NOT NULL,      -- JSON: versions of all packages, by environment
    plan     TEXT NOT NULL           -- JSON
);
-- What a run measured of each certified case on each input; runs in progress have no rows.
CREATE TABLE IF NOT EXISTS points (
    run          TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    line         TEXT NOT NULL,      -- equal where two points may be compared: case, schedule, method and machine
    group_name   TEXT NOT NULL,
    variant      TEXT NOT NULL,
    title        TEXT NOT NULL,
    input        TEXT NOT NULL,
    framework    TEXT NOT NULL,
    environment  TEXT NOT NULL,
    version      TEXT NOT NULL,
    step_ns      DOUBLE PRECISION NOT NULL, -- geometric mean over processes
    processes_ns TEXT NOT NULL,      -- JSON: the value of each process
    PRIMARY KEY (run, group_name, variant, input)
);
CREATE INDEX IF NOT EXISTS points_of_line ON points (line);
-- The state in which a run was read completely; a run whose state is another is read again.
CREATE TABLE IF NOT EXISTS read_runs (
    run   TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    stamp TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS trials (
    run            TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    id             TEXT NOT NULL,
    kind           TEXT NOT NULL,    -- measure
    case_id        TEXT NOT NULL,
    round          BIGINT NOT NULL,
    attempt        BIGINT NOT NULL, -- a disturbed round is repeated with the next number; the last attempt counts
    framework      TEXT NOT NULL,
    workload       TEXT NOT NULL,
    preset         TEXT NOT NULL,
    mode           TEXT NOT NULL,
    method         BIGINT NOT NULL,
    worker_hash    TEXT NOT NULL,
    job            TEXT NOT NULL,    -- JSON
    applied        TEXT NOT NULL,    -- JSON: settings as the framework reported them
    libraries      TEXT NOT NULL,    -- JSON
    phases_ns      TEXT NOT NULL,    -- JSON
    to_first_step_ns    BIGINT,
    peak_resident_bytes BIGINT,
    peak_device_bytes   BIGINT,
    evaluation     TEXT,             -- JSON
    warnings       TEXT NOT NULL,    -- JSON
    error_kind     TEXT,
    error_message  TEXT,
    done           BIGINT NOT NULL,
    folder         TEXT NOT NULL,
    PRIMARY KEY (run, id)
);
CREATE TABLE IF NOT EXISTS blocks (
    run        TEXT NOT NULL,
    trial      TEXT NOT NULL,
    input      TEXT NOT NULL,        -- pipeline, cached
    phase      TEXT NOT NULL,        -- first, training, warm-up, counted
    steps      BIGINT NOT NULL,
    start_ns   BIGINT NOT NULL,     -- the worker's monotonic clock
    elapsed_ns BIGINT NOT NULL,
    first_step BIGINT NOT NULL,     -- index of its first value in samples.i64 and losses.f32 of the trial's folder
    cpu_ns     BIGINT NOT NULL,     -- CPU time of all threads
    epoch      BIGINT NOT NULL,     -- from 1; 0 where the process does not train whole epochs
    FOREIGN KEY (run, trial) REFERENCES trials (run, id) ON DELETE CASCADE
);
CREATE INDEX IF NOT EXISTS blocks_of_trial ON blocks (run, trial);
-- The record of a run, file by file. Empty in SQLite, where the run's folder lies beside the index.
CREATE TABLE IF NOT EXISTS files (
    run     TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    path    TEXT NOT NULL,
    content BYTEA NOT NULL,
    PRIMARY KEY (run, path)
);
