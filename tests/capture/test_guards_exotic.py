"""Tensors that no program takes in are refused by name at any call: torch's own check ends the process over some."""

import pytest
import torch
from torch import nn

import monograph
from monograph.errors import DeviceError, UnsupportedError


class Subclass(torch.Tensor):
    pass


class Hostile(torch.Tensor):
    """Asking it anything raises."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise ValueError("hands off")


def pieces():
    return [torch.ones(2), torch.ones(3)]


EXOTIC = {
    "nested": lambda: torch.nested.nested_tensor(pieces()),
    "nested, requiring grad": lambda: torch.nested.nested_tensor(pieces(), requires_grad=True),
    "jagged": lambda: torch.nested.nested_tensor(pieces(), layout=torch.jagged),
    "subclass": lambda: torch.ones(2).as_subclass(Subclass),
    "hostile": lambda: torch.ones(2).as_subclass(Hostile),
    "sparse": lambda: torch.ones(2).to_sparse(),
    "compressed": lambda: torch.ones(2, 2).to_sparse_csr(),
    "quantised": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
    "oneDNN": lambda: torch.ones(2).to_mkldnn(),
    "meta": lambda: torch.ones(2, device="meta"),
    "fake": lambda: torch._subclasses.FakeTensorMode().from_tensor(torch.ones(2)),
}


def refusal(fast, *args, **kwargs):
    with pytest.raises((UnsupportedError, DeviceError)) as refused:
        fast(*args, **kwargs)
    return str(refused.value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in EXOTIC if name not in ("subclass", "hostile")])
def test_an_exotic_argument_is_refused_before_and_after_a_compilation(name):
    value = EXOTIC[name]()
    fast = monograph.compile(lambda x, more=None: x * 2 if more is None else x + more["k"][0], backend="reference")
    first = refusal(fast, value)
    plain = torch.ones(2)
    assert fast(plain).tolist() == fast(plain, {"k": [plain]}).tolist()
    assert refusal(fast, value) == first == refusal(fast, value)
    refusal(fast, plain, {"k": [value]})
    refusal(fast, plain, more={"k": [value]})
    assert fast(plain).tolist() == [2, 2]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["nested", "jagged", "subclass", "sparse"])
def test_an_exotic_argument_runs_eagerly_where_that_is_allowed(name):
    fast = monograph.compile(lambda x: x * 2, backend="reference", fullgraph=False)
    fast(torch.ones(2))
    value = EXOTIC[name]()
    for _ in range(2):
        assert type(fast(value)) is type(value) and fast(value).layout == value.layout


class Keeper(nn.Module):
    def __init__(self):
        super().__init__()
        self.state = torch.zeros(2)
        self.extra = None

    def forward(self, x):
        if self.extra is not None:
            x = x * 3
        self.state = self.state + x
        return self.state * 1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["nested", "jagged", "sparse"])
def test_an_exotic_tensor_where_the_program_keeps_its_state(name):
    module = Keeper()
    fast = monograph.compile(module, backend="reference")
    assert fast(torch.ones(2)).tolist() == [1, 1]
    module.state = EXOTIC[name]()
    with pytest.raises((UnsupportedError, RuntimeError)):        # by name, or by eager's own word where it takes none
        fast(torch.ones(2))
    module.state = torch.zeros(2)
    assert fast(torch.ones(2)).tolist() == [1, 1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["nested", "jagged", "subclass", "hostile", "sparse"])
def test_an_exotic_tensor_that_is_looked_at_but_not_used(name):
    module = Keeper()
    module.extra = EXOTIC[name]()
    fast = monograph.compile(module, backend="reference")
    assert fast(torch.ones(2)).tolist() == [3, 3]
    assert fast(torch.ones(2)).tolist() == [6, 6] and not fast.recompiles
    module.extra = None
    assert fast(torch.ones(2)).tolist() == [7, 7]


def test_plain_kinds_of_tensors_have_programs_of_their_own_or_share_one():
    fast = monograph.compile(lambda x: x * 2, backend="reference")
    base = torch.ones(4)
    for value in (base[:2], base[2:], nn.Buffer(torch.ones(2))):
        assert fast(value).tolist() == [2, 2]
    assert not fast.recompiles
    assert fast(nn.Parameter(torch.ones(2))).requires_grad
    assert fast(base[::2]).tolist() == [2, 2]
    assert len(fast.recompiles) == 2
