"""verify passes what is right and names what is wrong."""

import pytest
import torch
from torch import nn

import monograph
from monograph import backend, build
from monograph.ops.table import lookup
from monograph.tools import bisect
from monograph.tools.compare import difference


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 16)
        self.norm = nn.BatchNorm1d(16)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        hidden = nn.functional.gelu(self.linear(x))
        y = self.norm(hidden)
        return {"a": y.softmax(-1), "view": y[1:], "x": x, "drop": nn.functional.dropout(y, 0.5)}


def test_verify_leaves_everything_as_it_was():
    torch.manual_seed(0)
    net = Net()
    state = torch.get_rng_state()
    verified = monograph.verify(net, [(torch.randn(4, 8),), {"x": torch.randn(3, 8)}])
    assert verified.calls == 2 and verified.largest < 1e-4
    assert net.calls == 0 and net.norm.num_batches_tracked.item() == 0
    assert not torch.equal(state, torch.get_rng_state())          # randn above drew


def test_mismatch_names_node_and_line(monkeypatch):
    real = backend.compile_graph

    def wrong(graph, options, **more):
        for node in graph.nodes:
            if node.op.name == "aten.gelu.default":
                node.op, node.attributes = lookup("aten.silu.default"), {}
        return real(graph, options, **more)

    monkeypatch.setattr(bisect, "compile_graph", wrong)
    monkeypatch.setattr(build, "compile_graph", wrong)
    torch.manual_seed(0)
    with torch.no_grad(), pytest.raises(monograph.MismatchError, match=r"aten\.gelu\.default") as caught:
        monograph.verify(Net().eval(), [torch.randn(4, 8)])
    assert caught.value.loc.function.endswith("forward") and "gelu(self.linear" in line_of(caught.value.loc)


def line_of(loc):
    with open(loc.file) as file:
        return file.read().splitlines()[loc.line - 1]


@pytest.mark.parametrize("got, want, part", [
    (torch.ones(2), torch.ones(3), "shape"),
    (torch.ones(2), torch.ones(2).double(), "dtype"),
    (torch.ones(2, 2), torch.ones(2, 2).t(), "strides"),
    (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.1]), "1 of 2 elements"),
    (torch.tensor([float("nan")]), torch.tensor([1.0]), "1 of 1"),
    ([torch.ones(1)], (torch.ones(1),), "structure"),
    ((1,), (1.0,), "is a int"),
    ((1,), (2,), "is 1"),
])
def test_differences(got, want, part):
    assert part in difference(got, want)


def test_no_difference():
    nan = torch.tensor([float("nan"), 1.0])
    assert difference({"a": [nan, 1, "s"]}, {"a": [nan.clone(), 1, "s"]}) is None
    assert difference(torch.ones(1, 2).t(), torch.ones(2, 1)) is None


def test_gradients_are_compared():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * (3 if isinstance(g, torch._subclasses.FakeTensor) else 2)     # another one while it is traced

    net = nn.Linear(3, 3)
    x = torch.randn(2, 3)
    assert monograph.verify(lambda x: torch.tanh(net(x)), [x]).calls == 1
    with pytest.raises(monograph.MismatchError, match="a gradient"):
        monograph.verify(lambda x: Wrong.apply(net(x)), [x])


def test_inputs_that_are_no_calls():
    net = nn.Linear(3, 3)
    for inputs, error, says in ((torch.ones(2, 3), TypeError, "list of calls"), (3, TypeError, "list of calls"),
                                ([], ValueError, "nothing was compared")):
        with pytest.raises(error, match=says):
            monograph.verify(net, inputs=inputs)
