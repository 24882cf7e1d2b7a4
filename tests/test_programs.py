"""Whole programs, from the compiler to bytes and back, run in processes that never load the compiler."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from monograph.backend import compile_graph
from monograph.build import capture_call, gather_inputs
from monograph.codegen.derived import evaluator
from monograph.config import Options
from monograph.ir.parser import parse
from monograph.ops import table
from monograph.ops.evaluate import special
from monograph.runtime.execute import Executable
from monograph.runtime.serialise import dumps, loads

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def compiled(function, *args):
    """(program, its inputs for `args`)."""
    capture = capture_call(function, args, {}, Options.make())
    inputs = gather_inputs(capture.captured.bindings)(args)
    before = list(capture.captured.graph.inputs)
    half = compile_graph(capture.captured.graph, Options.make())
    graph = half.graph
    kept = [v for v, source in zip(graph.inputs, graph.sources, strict=True) if source.kind != "derived"]
    return half.program, [inputs[before.index(value)] for value in kept]


def folding():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten())
    return module.eval(), torch.randn(2, 3, 8, 8)


def gathering():
    def function(x, index):
        return torch.linalg.inv(x)[index], x.view(torch.int32).t().reshape(-1).cumsum(0), torch.full((2,), float("nan"))

    return function, torch.eye(4) + 0.1, torch.tensor([3, 0])


@pytest.mark.parametrize("case", [folding, gathering], ids=lambda case: case.__name__)
def test_programs_survive(case):
    function, *args = case()
    with torch.no_grad():
        program, inputs = compiled(function, *args)
        again = loads(dumps(program), evaluator(lambda text: parse(text, table.lookup)))
        expected = Executable(program, resolve=special).run(inputs)
        for mine, theirs in zip(Executable(again, resolve=special).run(inputs), expected, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=0, atol=0, equal_nan=True)
            assert mine.stride() == theirs.stride()


SCRIPT = """
import sys, torch
from monograph.runtime.execute import Executable
from monograph.runtime.serialise import loads
program = loads(open(sys.argv[1], "rb").read())
inputs, expected = torch.load(sys.argv[2])
found, = Executable(program).run(inputs)
torch.testing.assert_close(found, expected, rtol=0, atol=0)
print(*(name for name in ("llvmlite", "monograph.codegen", "monograph.ops") if name in sys.modules))
"""


def test_a_program_runs_without_the_compiler(tmp_path):
    torch.manual_seed(0)
    module, x = torch.nn.Sequential(torch.nn.Linear(8, 24), torch.nn.GELU()).eval(), torch.randn(3, 8)
    with torch.no_grad():
        program, inputs = compiled(module, x)
        expected = Executable(program).run(inputs)[0]
    torch.testing.assert_close(expected, module(x).detach(), rtol=1e-5, atol=1e-6)
    (tmp_path / "program").write_bytes(dumps(program))
    torch.save(([tensor.detach() for tensor in inputs], expected), tmp_path / "tensors")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "program"), str(tmp_path / "tensors")], capture_output=True,
        text=True, cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
