"""Start-up: what the command line must not import, errors in one line, first use by two processes at once."""

import json
import os
import sqlite3
import subprocess
import sys

import pytest

from kb.db import DataVersion, ensure, is_current

# -P: the installed package is tested, not the folder that the tests are started in.
HEAVY = (
    "sqlmodel",
    "sqlalchemy",
    "pydantic",
    "fastapi",
    "numpy",
    "networkx",
    "sklearn",
    "requests",
    "rich",
    "jinja2",
)


def kb(*arguments, env=None, **options):
    return subprocess.run(
        [sys.executable, "-P", "-m", "kb.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **(env or {})},
        **options,
    )


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["completion", "bash"]])
def test_light_commands_import_nothing_heavy(arguments):
    code = (
        "import sys; from kb.cli import run; status = run(sys.argv[1:]);"
        f"loaded = [name for name in {HEAVY!r} if name in sys.modules];"
        "print(loaded, file=sys.stderr); sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.strip().splitlines()[-1] == "[]"


def test_recommend_imports_no_orm(database):
    code = (
        "import sys; from kb.cli import run; status = run(sys.argv[1:]);"
        f"heavy = {('sqlmodel', 'sqlalchemy', 'pydantic', 'fastapi', 'networkx', 'sklearn', 'requests', 'jinja2')!r};"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr); sys.exit(status)"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            code,
            "recommend",
            "--hw",
            "rtx3090",
            "--model",
            "70b",
            "--db",
            database,
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.strip().splitlines()[-1] == "[]"


def assert_one_line_error(done, *words):
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: ")
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in lines[0]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["recomend"], ["recomend", "recommend"]),
        (["recommend", "--hw", "rtx3091", "--model", "70b"], ["rtx3091", "rtx-3090"]),
        (["recommend", "--hw", "rtx3090", "--model", "llama-9-70b"], ["llama-9-70b"]),
        (["recommend", "--hw", "rtx3090", "--model", "70b", "--batch", "0"], ["batch"]),
        (["recommend", "--hw", "rtx3090", "--model", "70b", "--batch", "many"], ["batch", "many"]),
        (["recommend", "--hw", "rtx3090", "--model", "70b", "--input-tokens", "-5"], ["input"]),
        (["recommend", "--hw", "rtx3090", "--model", "70b", "--acceptance", "1.5"], ["acceptance"]),
        (["recommend", "--hw", "rtx3090", "--model", "70b", "--devices", "1e99"], ["devices"]),
        (["recommend", "--hw", "rtx3090"], ["--model"]),
        (["estimate", "--hw", "a100", "--model", "70b", "--weights", "int99"], ["int99"]),
        (["estimate", "--hw", "a100", "--model", "nothing/config.json"], ["nothing/config.json"]),
        (["show", "no-such-thing-at-all"], ["no-such-thing-at-all"]),
        (["list", "papers", "--limit", "0"], ["limit"]),
        (["list", "models", "--year", "2024"], ["--year"]),
        (["references", "smith"], ["smith", "zhou"]),
    ],
)
def test_wrong_requests_are_one_line(arguments, words, database):
    where = [] if arguments[0] == "recomend" else ["--db", database]
    assert_one_line_error(kb(*arguments, *where), *words)


def test_a_file_that_is_no_database(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("These are my notes, not a database. " * 100)
    before = path.read_bytes()
    assert_one_line_error(kb("list", "papers", "--db", str(path)), "notes.txt")
    assert path.read_bytes() == before


def test_a_folder_is_no_database(tmp_path):
    assert_one_line_error(kb("list", "papers", "--db", str(tmp_path)), str(tmp_path))


def test_a_place_where_nothing_can_be_made(tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("")
    assert_one_line_error(kb("list", "papers", "--db", str(blocker / "kb.sqlite")), "kb.sqlite")


def test_closed_pipe_is_one_line(database):
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "kb.cli", "list", "papers", "--json", "--quiet", "--db", database],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.read(10)
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 2
    assert len(error.strip().splitlines()) == 1 and "Traceback" not in error


def test_first_use_by_two_processes_at_once(tmp_path):
    path = tmp_path / "new" / "kb.sqlite"
    command = [sys.executable, "-P", "-m", "kb.cli", "db", "status", "--json", "--db", str(path)]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)
    ]
    answers = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0, 0], answers
    first, second = (json.loads(out) for out, _err in answers)
    assert first == second
    assert first["works"] >= 530
    assert sum("building" in err for _out, err in answers) == 1
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_a_rebuild_keeps_the_readers_going_and_the_rows_the_same(tmp_path):
    path = str(tmp_path / "kb.sqlite")
    assert kb("db", "init", "--db", path).returncode == 0
    connection = sqlite3.connect(path)
    before = list(connection.iterdump())
    connection.close()
    assert kb("db", "upgrade", "--db", path).returncode == 0
    connection = sqlite3.connect(path)
    after = list(connection.iterdump())
    connection.close()
    assert rows(after) == rows(before)


def test_two_installed_copies_share_one_database(tmp_path):
    """Copies of the same data differ in their files' times: neither may find what the other built outdated."""
    url = f"sqlite:///{tmp_path / 'kb.sqlite'}"
    built = []
    copies = [DataVersion(stamp=stamp, digest=lambda: "same bytes") for stamp in ("first", "second")]
    assert [ensure(url, copy, built.append) for copy in (*copies, *copies)] == [True, True, False, False]
    assert len(built) == 1  # the second copy only leaves its stamp
    other = DataVersion(stamp="third", digest=lambda: "other bytes")
    assert ensure(url, other, built.append) and len(built) == 2
    assert not is_current(url, copies[0]), "what was built from other bytes is outdated"


def rows(dump):
    """The dump without what counts builds: the stamp of file times, the search index's version and its b-trees."""
    return sorted(
        line
        for line in dump
        if not any(word in line for word in ("data_stamp", "search_version", "search_fts_"))
    )


def test_json_errors_leave_stdout_empty(database):
    done = kb("recommend", "--hw", "rtx3091", "--model", "70b", "--json", "--db", database)
    assert done.returncode == 2
    assert done.stdout == ""
