"""LLVM in child processes: same code, and every way a child can fail."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

from monograph.codegen import assemble, build, target, workers
from monograph.codegen.llvm import emit, emit_module
from monograph.codegen.workers import Workers
from monograph.errors import CompileError
from monograph.loops.nodes import op
from tests.codegen.agree import pointwise
from tests.forked import in_child

ROOT = Path(__file__).parents[2]
F32 = torch.float32


def kernels(count=4):
    return [pointwise(lambda x: op("exp", x, dtype=F32), [F32], F32, 8 * n) for n in range(1, count + 1)]


@pytest.fixture
def team():
    team = Workers(2)
    yield team
    team.close()


@pytest.fixture
def log(caplog):
    with caplog.at_level(logging.DEBUG, logger="monograph"):
        yield caplog


def stand_in(tmp_path, monkeypatch, code):
    """A team whose processes run `code` in place of the worker."""
    program = tmp_path / "worker.py"
    program.write_text(code)
    monkeypatch.setattr(workers, "_command", lambda: [sys.executable, str(program)])
    return Workers(1)


def test_the_code_is_that_of_this_process(team):
    machine = target.host()
    some = kernels()
    assert build.compile_kernels(some, machine, 2, team=team) == build.compile_kernels(some, machine, 2)
    assert assemble.runner(machine) == team.compile(assemble.IR, machine, [])


def test_a_child_describes_the_same_machine(team, monkeypatch):
    here = target.host()
    monkeypatch.setattr(target, "_host", None)
    assert target.host(team.host) == here


def test_children_are_for_programs_with_large_weights(monkeypatch):
    with workers.opened(1 << 40) as none:
        assert none is None                             # LLVM is loaded: by the tests
    monkeypatch.delitem(sys.modules, "llvmlite.binding")
    with workers.opened(1 << 20) as none:
        assert none is None
    with workers.opened(1 << 40) as some:
        assert some.count >= 1 and some.host() is not None
        processes = [worker._process for worker in some._all]
    assert all(process.poll() is not None for process in processes)


def test_refused_text_names_the_kernel(team):
    with pytest.raises(CompileError, match="refuses kernel softmax_7: LLVM IR parsing error"):
        team.compile("define nonsense", target.host(), ["softmax_7"])
    assert team.compile(emit_module(kernels(1), target.host()), target.host(), []).startswith(b"\x7fELF")


def test_a_killed_child_is_replaced(team, log):
    for worker in team._all:
        os.kill(worker._process.pid, signal.SIGKILL)
    assert team.compile(emit(kernels(1)[0], target.host()), target.host(), ["k"]).startswith(b"\x7fELF")
    assert "ended with status -9 while at work on kernel k" in log.text


def test_children_killed_again_and_again_leave_the_work_to_this_process(tmp_path, monkeypatch, log):
    team = stand_in(tmp_path, monkeypatch, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    objects = build.compile_kernels(kernels(), target.host(), 2, team=team)
    assert len(objects) == 2 and log.text.count("ended with status -9") == 1 + workers.REPLACEMENTS
    team.close()


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV])
def test_a_child_that_llvm_brings_down_is_a_compile_error(tmp_path, monkeypatch, number):
    code = ("import os, resource, sys; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\nsys.stdin.readline()\n"
            f"print('LLVM ERROR: Cannot select', file=sys.stderr, flush=True); os.kill(os.getpid(), {int(number)})")
    team = stand_in(tmp_path, monkeypatch, code)
    with pytest.raises(CompileError, match=rf"breaks down on kernel k \({number.name}\)\n  LLVM ERROR: Cannot select"):
        team.compile("text", target.host(), ["k"])
    team.close()


@pytest.mark.parametrize(("seconds", "code"), [
    (0.3, "import time; time.sleep(100)"), (100, "import signal, time; signal.alarm(1); time.sleep(100)"),
])
def test_a_child_that_takes_too_long_is_a_compile_error(tmp_path, monkeypatch, seconds, code):
    monkeypatch.setattr(workers, "SECONDS", seconds)
    team = stand_in(tmp_path, monkeypatch, code)
    start = time.monotonic()
    with pytest.raises(CompileError, match="works on kernel k for more than"):
        team.compile("text", target.host(), ["k"])
    assert time.monotonic() - start < 30
    team.close()


@pytest.mark.parametrize("code", [
    "", "print('hello', flush=True); import time; time.sleep(100)",
    "print('{}', flush=True); import time; time.sleep(100)", "print('[]')",
    "import sys; print('{\"state\": \"done\", \"size\": 100}', 'x'); sys.exit(3)",
])
def test_nonsense_for_an_answer_is_no_answer(tmp_path, monkeypatch, code):
    team = stand_in(tmp_path, monkeypatch, code)
    assert team.compile("text", target.host(), []) is None
    team.close()


def test_a_child_without_llvmlite_leaves_the_work_to_this_process(tmp_path, monkeypatch, log):
    command = workers._command()
    command[-2] = str(tmp_path)
    monkeypatch.setattr(workers, "_command", lambda: command)
    team = Workers(2)
    assert team.host() is None
    assert len(build.compile_kernels(kernels(), target.host(), 2, team=team)) == 2
    assert "the other has no LLVM (No module named 'llvmlite')" in log.text
    team.close()


@pytest.mark.parametrize("executable", ["", None, "/usr/sbin/server", "/nowhere/python3"])
def test_without_an_interpreter_to_start_this_process_works(executable, monkeypatch, log):
    monkeypatch.setattr(sys, "executable", executable)
    team = Workers(2)
    assert len(build.compile_kernels(kernels(), target.host(), 2, team=team)) == 2
    assert "compiled in this process" in log.text
    team.close()


def test_a_refused_process_is_not_an_error(monkeypatch, log):
    def refuse(*args, **kwargs):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    team = Workers(2)
    assert team.compile("text", target.host(), []) is None and "not permitted" in log.text
    team.close()


def test_no_folder_for_temporary_files_and_no_thread_to_be_had(monkeypatch):
    def refuse(*args):
        raise FileNotFoundError(2, "No usable temporary directory found")

    def no_thread(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    monkeypatch.setattr(threading.Timer, "start", no_thread)
    team = Workers(1)
    assert team.host() is not None
    with pytest.raises(CompileError, match="refuses"):
        team.compile("nonsense", target.host(), ["k"])
    team.close()


def test_an_interrupt_between_question_and_answer_ends_the_child(tmp_path, monkeypatch):
    team = stand_in(tmp_path, monkeypatch, "import time; time.sleep(100)")
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        team.compile("text", target.host(), ["k"])
    assert team._all[0]._process.wait(10) == -signal.SIGKILL
    team.close()


def test_children_outlive_ctrl_c_and_end_with_their_parent(team):
    for worker in team._all:
        assert worker.ask(b'{"work": "host"}\n', "the host") is not None      # up, and past its preparations
        os.kill(worker._process.pid, signal.SIGINT)
        assert worker.ask(b'{"work": "host"}\n', "the host") is not None
        worker._process.stdin.close()                                           # what the end of a parent looks like
        assert worker._process.wait(10) == 0


def test_many_threads_share_a_team(team):
    machine = target.host()
    texts = [emit_module([k], machine) for k in kernels(8)]
    expected = [build.compile_text(text, machine) for text in texts]
    found = [None] * len(texts)

    def work(i):
        found[i] = build.compile_text(texts[i], machine, team=team)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


def test_a_forked_child_starts_processes_of_its_own(team):
    text, machine = emit(kernels(1)[0], target.host()), target.host()
    expected = team.compile(text, machine, [])

    def work():
        own = Workers(1)
        made = own.compile(text, machine, [])
        own.close()
        return made == expected

    assert in_child(work) == 0
    assert team.compile(text, machine, []) == expected


SCRIPT = """
import sys, torch
import monograph as mg
from monograph.codegen import workers
if __name__ == "__main__":
    torch.set_num_threads(1)
    started = []
    start = workers._Worker.__init__
    workers._Worker.__init__ = lambda self, command: start(self, command) or started.append(self)
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3000, 3000), torch.nn.ReLU(), torch.nn.Linear(3000, 5)).eval()
    x = torch.randn(2, 3000)
    with torch.no_grad():
        torch.testing.assert_close(mg.compile(module)(x), module(x), rtol=1e-4, atol=1e-5)
    assert started and all(worker._process.returncode is not None for worker in started)
    print("llvmlite" in sys.modules)
"""


@pytest.mark.parametrize("how", ["isolated", "stdin", "file in a folder that cannot be written"])
def test_however_python_was_started(how, tmp_path):
    """A whole compilation of a program with large weights; the parent never loads LLVM."""
    environment = {**os.environ, "MONOGRAPH_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    folder = tmp_path / "locked"
    folder.mkdir()
    if how == "isolated":
        (folder / "llvmlite.py").write_text("raise SystemExit('not the module meant')")
        options, given = ["-I", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{SCRIPT}"], None
    elif how == "stdin":
        environment["PYTHONSAFEPATH"] = "1"
        options, given = ["-"], SCRIPT
    else:
        (folder / "script.py").write_text(SCRIPT)
        options, given = ["script.py"], None
    folder.chmod(0o500)
    try:
        done = subprocess.run([sys.executable, *options], input=given, capture_output=True, text=True, cwd=folder,
                              env=environment, timeout=200, check=False)
    finally:
        folder.chmod(0o700)
    assert done.returncode == 0 and done.stdout == "False\n", done.stderr
