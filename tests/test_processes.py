"""Forked children and the disk cache, through the public face."""

import os
import subprocess
import sys
from pathlib import Path

import torch

import monograph as mg
from tests.forked import in_child

ROOT = Path(__file__).parents[1]


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256)).eval()


def test_a_compiled_module_runs_in_a_forked_child():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        module, x = model(), torch.randn(64, 256)
        fast = mg.compile(module)
        with torch.no_grad():
            expected = fast(x)
            assert in_child(lambda: torch.equal(fast(x), expected)) == 0

            def changed():
                module[0].weight.data = weight
                return torch.allclose(fast(x), doubled, rtol=1e-4, atol=1e-5)

            weight = module[0].weight * 2
            doubled = torch.nn.functional.linear(x, weight, module[0].bias)
            doubled = module[2](torch.nn.functional.gelu(doubled))

            assert in_child(changed) == 0
            assert in_child(lambda: torch.allclose(mg.compile(model())(x[:3]), expected[:3], rtol=1e-4, atol=1e-5)) == 0
            assert torch.equal(fast(x), expected)
    finally:
        torch.set_num_threads(before)


SCRIPT = """
import faulthandler, torch
faulthandler.dump_traceback_later(120, exit=True)
import monograph as mg
from monograph import cache
from monograph.codegen import build
cache.is_stable = lambda: True               # the package may be edited while this test runs
cache._source_digest = lambda: "fixed"
made = []
compile_text = build.compile_text
build.compile_text = lambda *args, **kwargs: made.append(1) or compile_text(*args, **kwargs)
torch.manual_seed(0)
module = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU()).eval()
x = torch.randn(2, 8)
with torch.no_grad():
    torch.testing.assert_close(mg.compile(module)(x), module(x))
print(len(made))
"""


def compiled(cache):
    """How many modules a fresh process compiled for the script's model."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, cwd=ROOT,
        env={**os.environ, "MONOGRAPH_CACHE_DIR": str(cache)},
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout), done.stderr


def test_object_code_is_found_by_the_next_process(tmp_path):
    cache = tmp_path / "cache"
    assert compiled(cache)[0] > 0
    assert compiled(cache)[0] == 0
    for path in cache.rglob("*"):
        if path.is_file():
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 0xFF
            path.write_bytes(data)
    assert compiled(cache)[0] > 0           # damaged: compiled again, silently
    entries = sorted((path for path in cache.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    small, large = entries[0].read_bytes(), entries[-1].read_bytes()
    entries[0].write_bytes(large)           # each under the other's name
    entries[-1].write_bytes(small)
    for path in entries[1:-1]:
        path.write_bytes(b"")
    assert compiled(cache)[0] > 0 and compiled(cache)[0] == 0


def test_a_cache_that_cannot_be_had_is_one_warning(tmp_path):
    (tmp_path / "file").write_text("")
    made, errors = compiled(tmp_path / "file")
    assert made > 0 and errors.count("not cached") == 1
    assert errors.startswith("<string>:"), errors           # a line of the user's


SPREAD = """
import multiprocessing, sys
import torch
import monograph as mg

def agrees(_):
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3000, 3000), torch.nn.ReLU(), torch.nn.Linear(3000, 5)).eval()
    x = torch.randn(2, 3000)
    with torch.no_grad():
        torch.testing.assert_close(mg.compile(module)(x), module(x), rtol=1e-4, atol=1e-5)
    return torch.tensor("llvmlite.binding" not in sys.modules)

class Data(torch.utils.data.Dataset):
    __getitem__ = staticmethod(agrees)
    __len__ = lambda self: 2

if __name__ == "__main__":
    print(torch.cat(list(torch.utils.data.DataLoader(Data(), num_workers=2))).tolist())
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print([bool(answer) for answer in pool.map(agrees, range(2), chunksize=1)])
"""


def test_workers_of_a_data_loader_and_spawned_processes_compile(tmp_path):
    """At the same time and the same thing, each with children of its own that LLVM works in."""
    script = tmp_path / "script.py"
    script.write_text(SPREAD)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=250, check=False,
        env={**os.environ, "MONOGRAPH_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0 and done.stdout == "[True, True]\n" * 2, done.stderr


INTERRUPTED = """
import os, signal, sys, threading, torch
import monograph as mg
from monograph.codegen import workers
started, sent = [], []
start = workers._Worker.__init__
ask = workers._Worker.ask

def interrupted(self, request, what):
    if b'"object"' in request[:40] and not sent:
        sent.append(True)
        os.killpg(0, signal.SIGINT)                  # as a terminal does: to the parent and its children
    return ask(self, request, what)

workers._Worker.__init__ = lambda self, command: started.append(self) or start(self, command)
workers._Worker.ask = interrupted
module = torch.nn.Sequential(torch.nn.Linear(3000, 3000), torch.nn.ReLU(), torch.nn.Linear(3000, 5)).eval()
x = torch.randn(2, 3000)
fast = mg.compile(module)
with torch.no_grad():
    try:
        fast(x)
    except KeyboardInterrupt:
        print("interrupted")
    assert all(worker._process.returncode is not None for worker in started)
    torch.testing.assert_close(fast(x), module(x), rtol=1e-4, atol=1e-5)
"""


def test_ctrl_c_while_children_compile_leaves_everything_usable():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=250, check=False,
                          cwd=ROOT, env={**os.environ, "MONOGRAPH_CACHE_DIR": "off"}, start_new_session=True)
    assert done.returncode == 0 and done.stdout == "interrupted\n", done.stderr
    assert "Traceback" not in done.stderr
