"""`torch.compile(..., backend="monograph")`: our pipeline behind Dynamo, with values, gradients and state of eager."""

import copy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn

import monograph
from monograph import registration, torch_backend
from monograph.dispatch import known

ROOT = Path(__file__).parents[1]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 4)
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("offset", torch.arange(4.0))

    def forward(self, x):
        return torch.tanh(self.norm(self.linear(x)) + self.offset).sum(1)


@pytest.fixture(autouse=True)
def fresh():
    torch.manual_seed(0)
    torch._dynamo.reset()
    monograph.reset()
    yield
    torch._dynamo.reset()


def compiled_graph():
    entry, = (entry for dispatcher in known for entry in dispatcher.entries)
    return entry.report.captured.graph


@pytest.mark.parametrize("choice", [{"mode": "reduce-overhead"}, {"options": {"weights": "live"}}])
def test_training_equals_eager(choice):
    """In f64: gradients in front of a batch norm are small differences of large numbers, the bias's is 0 but for
    rounding."""
    net = Net().double()
    eager = copy.deepcopy(net)
    fast = torch.compile(net, backend="monograph", **choice)
    for size in (3, 5, 7, 7):
        x = torch.randn(size, 6, dtype=torch.float64)
        given = [x.clone().requires_grad_() for _ in range(2)]
        torch.testing.assert_close(fast(given[0]), eager(given[1]))
        fast(given[0]).square().sum().backward()
        eager(given[1]).square().sum().backward()
        torch.testing.assert_close(given[0].grad, given[1].grad)
    for mine, theirs in zip([*net.parameters()], [*eager.parameters()], strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)
    torch.testing.assert_close(net.state_dict(), eager.state_dict())


def test_weights_are_bound_and_their_changes_seen():
    net = Net().eval()
    fast = torch.compile(net, backend="monograph")
    x = torch.randn(3, 6)
    with torch.no_grad():
        fast(x)
        graph = compiled_graph()
        assert sum(source.kind == "argument" for source in graph.sources) == 1
        net.linear.weight.mul_(3)
        torch.testing.assert_close(fast(x), net(x))
        net.linear.weight = nn.Parameter(torch.randn(4, 6))
        torch.testing.assert_close(fast(x), net(x))


def test_many_sets_of_weights_become_arguments():
    graphs = []
    net = Net().eval()

    def keep(graph, inputs, **more):
        graphs.append(torch_backend.compile_frame(graph, inputs, **more))
        return graphs[-1]

    with torch.no_grad():
        torch.compile(net, backend=keep)(torch.randn(3, 6))
        frame, = graphs
        free = {i: torch.randn(3, 6) for i in frame.free}
        for _ in range(torch_backend.SETS + 3):
            other = Net().eval()
            table = dict(other.named_parameters()) | dict(other.named_buffers())
            weights = {i: next(v for k, v in table.items() if name.endswith(k.replace(".", "_parameters_") + "_")
                               or name.endswith(k.replace(".", "_buffers_") + "_") or name.endswith(f"_{k}_"))
                       for i, name in frame.bound.items()}
            given = {**free, **weights}
            result, = frame(*[given[i] for i in sorted(given)])
            torch.testing.assert_close(result, other(*free.values()))
    assert len(frame.dispatchers) == torch_backend.SETS and frame.general is not None


def test_dynamic_sizes_and_numbers():
    def fn(x, n):
        return x.view(-1, x.shape[0]).expand(n, -1, -1) * n

    fast = torch.compile(fn, backend="monograph", dynamic=True)
    for size, n in ((3, 2), (5, 4), (8, 2)):
        x = torch.randn(size, 4)
        torch.testing.assert_close(fast(x, n), fn(x, n))


def test_broken_graphs_are_told_once():
    def fn(x):
        y = x + 1
        print("seen")
        print("again")
        return y * 2 if y.sum() > 0 else y * 3

    fast = torch.compile(fn, backend="monograph")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for size in (2, 3, 4):
            torch.testing.assert_close(fast(torch.ones(size)), torch.full((size,), 4.0))
    told = [w for w in caught if "Monograph" in str(w.message)]
    assert len(told) == 1 and "monograph.compile" in str(told[0].message)
    assert told[0].filename == __file__ and told[0].lineno == fn.__code__.co_firstlineno + 2


def test_whole_graphs_are_not():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.compile(Net(), backend="monograph")(torch.randn(3, 6))
    assert not [w for w in caught if "Monograph" in str(w.message)]


def test_nodes_know_the_users_lines():
    def fn(x):
        y = x.sin()
        return y.cos()

    torch.compile(fn, backend="monograph")(torch.ones(2))
    graph = compiled_graph()
    first = fn.__code__.co_firstlineno
    assert [(node.loc.file, node.loc.line) for node in graph.nodes] == [(__file__, first + 1), (__file__, first + 2)]


def test_the_entry_point_is_the_registered_function():
    _, _, section = (ROOT / "pyproject.toml").read_text().partition("[project.entry-points.torch_dynamo_backends]\n")
    assert section.startswith(f'monograph = "{registration.__name__}:{registration.monograph.__name__}"\n')


@pytest.mark.parametrize("before", ["", "import torch._dynamo; "])
def test_importing_the_package_is_enough(before):
    code = (f"{before}import sys, monograph; assert ('torch' in sys.modules) == {bool(before)}; "
            "import torch; print('monograph' in torch._dynamo.list_backends())")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True).stdout
    assert out.strip() == "True"
