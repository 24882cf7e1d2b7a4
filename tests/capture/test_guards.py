"""Every change that eager would see makes the guard fail, and nothing else does."""

import contextvars
import os
import warnings

import numpy as np
import pytest
import torch
import torch.autograd.forward_ad as fwad
from torch import nn

import monograph
from monograph.api import dispatcher_of
from monograph.capture.readset_code import names


class Config:
    def __init__(self):
        self.scale = 2.0
        self.options = {"a": 1}
        self.items = [1, 2]


GLOBAL = 3
CONTEXT = contextvars.ContextVar("context", default=1)


class OtherConfig(Config):
    pass


class Shared:
    pass


def helper(x, shift=0, *, times=1):
    return x * GLOBAL * times + shift


def make_closure():
    factor = 2.0

    def times(x):
        return x * factor

    def change(value):
        nonlocal factor
        factor = value

    return times, change


times, change_factor = make_closure()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        return self.dropout(self.linear(x))


class OtherBlock(Block):
    def forward(self, x):
        return x


class Net(nn.Module):
    factor = 1.0

    def __init__(self):
        super().__init__()
        self.config = Config()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.tail = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.register_buffer("offset", torch.ones(4))
        self.optional = None
        self.table = {"k": 1.5}

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        x = self.tail(x) * self.config.scale + self.config.options["a"] + sum(self.config.items) + self.offset
        if self.optional is not None:
            x = x + 1
        if hasattr(self, "extra"):
            x = x - 1
        if os.environ.get("MONOGRAPH_TEST_FLAG") == "1":
            x = x * 0
        return times(helper(x)) * self.factor * self.table["k"] * CONTEXT.get()


def set_global(name, value):
    old = globals()[name]
    globals()[name] = value
    return lambda: globals().__setitem__(name, old)


def replace_attribute(owner, name, value):
    old = getattr(owner, name)
    setattr(owner, name, value)
    return lambda: setattr(owner, name, old)


def set_flag(net):
    os.environ["MONOGRAPH_TEST_FLAG"] = "1"
    return lambda: os.environ.pop("MONOGRAPH_TEST_FLAG")


def set_context(net):
    token = CONTEXT.set(2)
    return lambda: CONTEXT.reset(token)


def restore_factor(net):
    change_factor(5.0)
    return lambda: change_factor(2.0)


CHANGES = {
    "eval of one dropout is undone": lambda net: net.blocks[1].dropout.train() and None,
    "train": lambda net: net.train() and None,
    "submodule of a ModuleList": lambda net: net.blocks.__setitem__(0, Block()),
    "append to a ModuleList": lambda net: net.blocks.append(Block()) and None,
    "item of a Sequential": lambda net: net.tail.__setitem__(1, nn.GELU()),
    "parameter": lambda net: setattr(net.blocks[0].linear, "weight", nn.Parameter(torch.zeros(4, 4))),
    "dtype of parameters": lambda net: net.double() and None,
    "requires_grad of a parameter": lambda net: net.blocks[0].linear.weight.requires_grad_(False) is None,
    "attribute of a config": lambda net: setattr(net.config, "scale", 5.0),
    "dict in a config": lambda net: net.config.options.__setitem__("a", 7),
    "list in a config": lambda net: net.config.items.append(3),
    "dict of the module": lambda net: net.table.__setitem__("k", 9.0),
    "None becomes something": lambda net: setattr(net, "optional", 1),
    "hasattr becomes true": lambda net: setattr(net, "extra", 1),
    "forward hook": lambda net: net.blocks[0].register_forward_hook(lambda *a: None) and None,
    "forward pre-hook of a leaf": lambda net: net.blocks[0].linear.register_forward_pre_hook(lambda *a: None) and None,
    "forward of an instance": lambda net: setattr(net.blocks[0], "forward", lambda x: x),
    "forward of a class": lambda net: replace_attribute(Block, "forward", lambda self, x: x),
    "class attribute": lambda net: replace_attribute(Net, "factor", 3.0),
    "global number": lambda net: set_global("GLOBAL", 4),
    "global function": lambda net: set_global("helper", lambda x: x),
    "code of a function": lambda net: replace_attribute(helper, "__code__", (lambda x: x).__code__),
    "defaults of a function": lambda net: replace_attribute(helper, "__defaults__", (2,)),
    "keyword defaults of a function": lambda net: replace_attribute(helper, "__kwdefaults__", {"times": 2}),
    "class of an object": lambda net: setattr(net.config, "__class__", OtherConfig),
    "class of a submodule": lambda net: setattr(net.blocks[0], "__class__", OtherBlock),
    "class of one of torch's modules": lambda net: setattr(net.blocks[0].dropout, "__class__", nn.Identity),
    "bases of a class": lambda net: replace_attribute(Block, "__bases__", (Shared, nn.Module)),
    "closure": restore_factor,
    "environment variable": set_flag,
    "context variable": set_context,
    "global module hook": lambda net: nn.modules.module.register_module_forward_hook(lambda *a: None).remove,
    "torch.nn.functional.linear": lambda net: replace_attribute(
        torch.nn.functional, "linear", lambda x, weight, bias=None: x),
}
HARMLESS = {
    "content of a buffer": lambda net: net.offset.mul_(2),
    "content of a weight": lambda net: net.blocks[0].linear.weight.data.mul_(2),
    "an attribute nobody read": lambda net: setattr(net, "unrelated", 1),
    "an equal number in a closure": lambda net: change_factor(float("2.0")),
    "equal defaults": lambda net: setattr(helper, "__defaults__", tuple([0])),
    "an equal number": lambda net: setattr(net.config, "scale", float("2.0")),
}


def compiled_net():
    torch.manual_seed(0)
    net = Net().eval()
    fast = monograph.compile(net, backend="reference")
    x = torch.randn(2, 4)
    with torch.no_grad():
        fast(x)
    return net, fast, x


def check(net, fast, x):
    """Whether the guard still holds; the compiled call equals eager either way."""
    guard = dispatcher_of(fast).entries[0].guard
    with torch.no_grad():
        holds = guard.check((x,), {}) is not None
        reasons = [] if holds else guard.failures((x,), {})
    return holds, reasons


@pytest.mark.parametrize("name", CHANGES)
def test_change_is_noticed_and_named(name):
    net, fast, x = compiled_net()
    assert check(net, fast, x) == (True, [])
    undo = CHANGES[name](net)
    try:
        holds, reasons = check(net, fast, x)
        assert not holds and reasons
    finally:
        if callable(undo):
            undo()


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_change_keeps_the_entry(name):
    net, fast, x = compiled_net()
    HARMLESS[name](net)
    assert check(net, fast, x) == (True, [])
    with torch.no_grad():
        torch.testing.assert_close(fast(x), net(x))


def test_result_follows_a_config_change():
    net, fast, x = compiled_net()
    net.config.scale = 0.5
    with torch.no_grad():
        torch.testing.assert_close(fast(x), net(x))
    assert "config.scale: 2.0 -> 0.5" in str(fast.recompiles[0])


def count(function, *calls):
    fast = monograph.compile(function, backend="reference")
    for args in calls:
        torch.testing.assert_close(fast(*args), function(*args))
    return fast.recompiles


@pytest.mark.parametrize("other, reason", [
    ((torch.ones(3),), "shape"),
    ((torch.ones(2, dtype=torch.float64),), "dtype"),
    ((torch.ones(4)[::2],), "strides"),
    ((nn.Parameter(torch.ones(2), requires_grad=False),), "class"),
    ((3.0,), "args[0]"),
])
def test_argument_facts(other, reason):
    recompiles = count(lambda x: x * 2, (torch.ones(2),), (torch.ones(2),), other)
    assert len(recompiles) == 1 and reason in str(recompiles[0])


def test_numbers_are_compared_by_type_and_sign():
    calls = [(torch.ones(2), value) for value in (1, 1.0, True, 0.0, -0.0, 0)]
    assert len(count(lambda x, n: x / n, *calls)) == 5


def test_nan_argument_does_not_recompile():
    fast = monograph.compile(lambda x, n: x + n, backend="reference")
    fast(torch.ones(2), float("nan"))
    fast(torch.ones(2), float("nan"))
    assert not fast.recompiles


def test_same_tensor_twice_is_another_program():
    def f(x, y):
        return (x + 1, y) if x is y else (x - 1, y)

    x, y = torch.ones(2), torch.ones(2)
    assert "same tensor" in str(count(f, (x, y), (x, x))[0])


def test_overlap_matters_where_the_program_writes():
    def f(x, y):
        x.mul_(2)
        return y + 1

    fast = monograph.compile(f, backend="reference")
    base = torch.ones(4)
    assert fast(torch.ones(2), torch.ones(2)).tolist() == [2, 2]
    assert fast(base[:2], base[1:3]).tolist() == [3, 2]
    assert "share memory" in str(fast.recompiles[0])


def test_ambient_modes():
    fast = monograph.compile(lambda x: x @ x, backend="reference")
    x = torch.ones(2, 2)
    fast(x)
    with torch.no_grad():
        fast(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert fast(x).dtype is torch.bfloat16
    assert ["grad mode" in str(fast.recompiles[0]), "autocast" in str(fast.recompiles[1])] == [True, True]


def test_nested_structures_and_keyword_order():
    def f(d, *rest, scale=1.0):
        return d["a"][0] * scale + sum(rest)

    fast = monograph.compile(f, backend="reference")
    x = torch.ones(2)
    fast({"a": [x, x + 1], "b": (1, "s")}, x, scale=2.0)
    fast({"a": [x, x + 1], "b": (1, "s")}, x, scale=2.0)
    assert not fast.recompiles
    fast({"a": [x, x + 1], "b": (2, "s")}, x, scale=2.0)
    fast({"a": [x, x + 1], "b": (2, "s")}, x, x, scale=2.0)
    assert "1 -> 2" in str(fast.recompiles[0]) and "structure" in str(fast.recompiles[1])


def test_hooks_are_gone_after_a_trace():
    before = nn.Module.__getattribute__, type(os.environ).__getitem__, Config.__getattribute__
    compiled_net()
    with pytest.raises(monograph.UnsupportedError):
        monograph.compile(lambda x: x.to_sparse().indices(), backend="reference")(torch.ones(2, 2))
    assert (nn.Module.__getattribute__, type(os.environ).__getitem__, Config.__getattribute__) == before


def test_names_found_in_code():
    def f(x):
        def inner():
            return os.environ.get(str(x))

        global GLOBAL
        GLOBAL = torch.nn.functional.relu(x)
        return inner() + helper(x)

    found = names(f.__code__)
    assert set(found.globals) == {"os", "str", "torch", "helper"} and found.stored == {"GLOBAL"}
    assert set(found.chains) == {("os", ("environ", "get")), ("torch", ("nn", "functional", "relu"))}


def test_many_names_need_extended_arguments():
    body = "\n".join(f"    total += math{i}.sin.x{i}" for i in range(400))
    scope = {}
    exec(f"def f(total):\n{body}\n    return total", scope)
    found = names(scope["f"].__code__)
    assert found.chains == tuple((f"math{i}", ("sin", f"x{i}")) for i in range(400))


def test_array_content_and_odd_keys_are_compared():
    key = torch.ones(1)
    array, table = np.ones(2, np.float32), {key: 2.0, "k": 1.0}

    def f(x):
        return x * torch.tensor(array) * sum(table.values())

    fast = monograph.compile(f, backend="reference")
    x = torch.ones(2)
    assert fast(x).tolist() == fast(x).tolist() == [3, 3] and not fast.recompiles
    array[0] = 5
    assert fast(x).tolist() == [15, 3]
    del table[key]
    table[torch.ones(1)] = 2.0
    assert fast(x).tolist() == [15, 3] and len(fast.recompiles) == 2


def test_forward_mode_and_script_tracing_see_every_op():
    fast = monograph.compile(lambda x: x.sin() * 2, backend="reference")
    x = torch.ones(2)
    fast(x)
    with fwad.dual_level():
        tangent = fwad.unpack_dual(fast(fwad.make_dual(x, torch.ones(2)))).tangent
    torch.testing.assert_close(tangent, 2 * x.cos())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(fast, (x,), check_trace=False)
    torch.testing.assert_close(traced(x + 1), (x + 1).sin() * 2)


def test_argument_that_shares_memory_with_a_written_buffer():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(2))

        def forward(self, x):
            self.seen.add_(1)
            return x * 2

    net, twin = Counter(), Counter()
    fast = monograph.compile(net, backend="reference")
    x = torch.zeros(2)
    for mine, theirs in ((x, x), (x, x), (net.seen, twin.seen), (net.seen, twin.seen)):
        torch.testing.assert_close(fast(mine), twin(theirs))
    assert len(fast.recompiles) == 1 and "weights" in str(fast.recompiles[0])


def test_many_arguments():
    fast = monograph.compile(lambda tensors: sum(tensors), backend="reference")
    x = [torch.full((1,), float(i)) for i in range(20)]
    assert fast(x).item() == fast(x).item() == 190
    y = [*x[:10], *x[:10]]
    assert fast(y).item() == fast(y).item() == 90 and len(fast.recompiles) == 1


def test_overlap_at_the_first_call_is_not_taken_for_granted():
    base = torch.arange(4.0)
    fast = monograph.compile(lambda x, y: x.sum() + y * 2, backend="reference")
    for args in ((base, base[1:3]), (torch.ones(4), torch.zeros(2)), (base, base[1:3]), (base, base[:2])):
        torch.testing.assert_close(fast(*args), args[0].sum() + args[1] * 2)

    net = nn.Linear(3, 3, bias=False)
    fast = monograph.compile(net, backend="reference")
    with torch.no_grad():
        for x in (net.weight, net.weight[:2], torch.zeros(3, 3), torch.ones(2, 3)):
            torch.testing.assert_close(fast(x), net(x))


def test_weights_that_no_longer_share_memory():
    net = nn.Module()
    net.a = nn.Parameter(torch.ones(3), requires_grad=False)
    net.b = nn.Parameter(net.a.data[:2], requires_grad=False)

    def f(x):
        return x[:2] * net.b + net.a.sum()

    fast = monograph.compile(f, backend="reference")
    x = torch.ones(3)
    torch.testing.assert_close(fast(x), f(x))
    net.b.data = torch.full((2,), 7.0)
    torch.testing.assert_close(fast(x), f(x))
