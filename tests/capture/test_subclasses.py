"""Subclasses of Tensor: what their `__torch_function__` makes of ops is in the program; results have eager's class."""

import copy
import functools

import pytest
import torch

import monograph

torch.set_num_threads(1)


class Marked(torch.Tensor):
    """Nothing of its own: results of ops are Marked too."""

    def doubled(self):
        return self * 2


class Below(Marked):
    pass


class Counted(torch.Tensor):
    """Keeps count of what is done to it."""

    asked = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.asked.append((func.__name__, tuple(kind.__name__ for kind in types)))
        return super().__torch_function__(func, types, args, kwargs or {})


class Metres(torch.Tensor):
    """A unit in an attribute, which ops carry along."""

    @staticmethod
    def of(data, unit):
        made = data.as_subclass(Metres)
        made.unit = unit
        return made

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        units = [x.unit for x in args if isinstance(x, Metres) and hasattr(x, "unit")]
        if not isinstance(result, torch.Tensor) or not units:
            return result
        return Metres.of(result, "^2".join(units) if func in (torch.mul, torch.Tensor.mul) else units[0])


class Logged(torch.Tensor):
    """Answers one function by another, leaves the others to their operands."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.relu:
            return torch.sigmoid(*(x.as_subclass(torch.Tensor) for x in args))
        if func is torch.tanh:
            return NotImplemented
        return super().__torch_function__(func, types, args, kwargs or {})


def marked(*shape):
    return torch.arange(1.0, 1 + functools.reduce(int.__mul__, shape, 1)).reshape(shape).as_subclass(Marked)


def described(value):
    """What can be told of a result, without asking its class for anything."""
    if isinstance(value, (tuple, list)):
        return [described(entry) for entry in value]
    if not isinstance(value, torch.Tensor):
        return value
    with torch._C.DisableTorchFunctionSubclass():
        attributes = {name: described(entry) for name, entry in vars(value).items()}
        return type(value), value.dtype, value.shape, value.stride(), value.requires_grad, value.tolist(), attributes


def halved(x):
    y = x + 1
    while y.sum() > 4:
        y = y / 2
    return y, type(y) is Marked


FUNCTIONS = {
    "op": lambda x: x * 2 + 1,
    "method": lambda x: x.doubled() + 1,
    "several": lambda x: (x.max(0), x.split(1), x.sum().item()),
    "view": lambda x: (x.t(), x[0], x.view(-1)),
    "beside a plain one": lambda x: (torch.ones(2, 3) + x, x + torch.ones(2, 3), torch.ones(2)),
    "as a plain one": lambda x: x.as_subclass(torch.Tensor) + 1,
    "of another class": lambda x: (x.as_subclass(Below), (x + 1).as_subclass(Counted).as_subclass(torch.Tensor)),
    "class asked": lambda x: x + 1 if type(x) is Marked and isinstance(x, Marked) and x.__class__ is Marked else x,
    "class of a result": lambda x: x + (1 if type(x + 1) is Marked and not isinstance(x.detach(), Below) else 2),
    "itself": lambda x: (x, x + 1),
    "in place": lambda x: x.add_(1).mul_(2),
    "twice": lambda x: (y := x + 1, y),
    "branch": lambda x: x + 1 if x.sum() > 3 else x * 2,
    "loop": lambda x: [x := x * 2 for _ in range(3)][-1],
    "another class on a path": lambda x: x + 1 if x.sum() > 3 else x.as_subclass(torch.Tensor),
    "while": halved,
    "stack": lambda x: torch.stack([x, x]) @ x.t(),
    "functional": lambda x: torch.nn.functional.layer_norm(x, (3,)).softmax(-1),
}


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_a_class_without_code(name, backend):
    function = FUNCTIONS[name]
    compiled = monograph.compile(function, backend=backend)
    for _ in range(2):
        ours, theirs = marked(2, 3), marked(2, 3)
        assert described(compiled(ours)) == described(function(theirs)) and described(ours) == described(theirs)
    assert not compiled.recompiles
    assert (compiled(ours)[0] is ours) == (name == "itself")


@pytest.mark.parametrize("function", [lambda x: x * 2 + 1, lambda x: (x + 1).sum(), lambda x: x[0].sin().t()],
                         ids=["op", "sum", "view"])
def test_gradients(function):
    compiled = monograph.compile(function)
    leaves = [torch.arange(6.0).reshape(2, 3).requires_grad_() for _ in range(2)]
    for run, leaf in zip((compiled, function), leaves):
        result = run(leaf.as_subclass(Marked))
        assert type(result) is Marked and result.requires_grad
        result.pow(2).sum().backward()
    torch.testing.assert_close(leaves[0].grad, leaves[1].grad)


def test_its_code_runs_in_the_trace_alone_and_its_effects_at_every_call():
    def function(x):
        return torch.nn.functional.relu(x @ x.t()) + x.shape[0]

    compiled, x = monograph.compile(function), torch.ones(2, 3).as_subclass(Counted)
    Counted.asked.clear()
    want = described(function(x))
    asked = Counted.asked.copy()
    assert len(asked) > 3
    for _ in range(3):
        Counted.asked.clear()
        assert described(compiled(x)) == want and Counted.asked == asked


def test_attributes_that_ops_carry_along():
    def function(x):
        return x * x + 1, x + 1, torch.ones(2) if x.unit == "m" else x

    compiled = monograph.compile(function)
    for unit in ("m", "m", "ft"):
        x = Metres.of(torch.ones(2), unit)
        assert described(compiled(x)) == described(function(x))


def test_what_its_class_answers():
    compiled, x = monograph.compile(lambda x: torch.relu(x) + 1), torch.ones(2).as_subclass(Logged)
    assert described(compiled(x)) == described(torch.relu(x) + 1)
    with pytest.raises(TypeError, match="no implementation found|Multiple dispatch failed"):
        monograph.compile(torch.tanh)(x)


def test_another_class_is_another_program():
    def function(x):
        return x * 2

    compiled = monograph.compile(function)
    for kind in (Marked, torch.Tensor, Below, Counted, Marked):
        x = torch.ones(2).as_subclass(kind)
        assert type(compiled(x)) is type(function(x)) is kind
    assert len(compiled.recompiles) == 3


def test_code_of_the_class_is_guarded(monkeypatch):
    def function(x):
        return x.doubled()

    compiled, x = monograph.compile(function), marked(2)
    assert compiled(x).tolist() == function(x).tolist()
    monkeypatch.setattr(Marked, "doubled", lambda self: self * 3)
    assert compiled(x).tolist() == function(x).tolist() == [3, 6]
    monkeypatch.setattr(Marked, "__torch_function__", classmethod(lambda cls, *given: torch.zeros(1)))
    assert torch.equal(compiled(x), torch.zeros(1)) and torch.equal(function(x), torch.zeros(1))


class Scale(torch.nn.Parameter):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.Tensor.add:
            func = torch.Tensor.sub
        return super(torch.nn.Parameter, cls).__torch_function__(func, types, args, kwargs or {})


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = Scale(torch.full((2,), 3.0))
        self.register_buffer("shift", torch.full((2,), 2.0).as_subclass(Marked))

    def forward(self, x):
        return x * 2 + self.shift, x.add(1)


def test_weights_and_buffers():
    model = Model()
    compiled, x = monograph.compile(model), torch.ones(2)
    assert described(compiled(x)) == described(model(x))
    model.shift.add_(1)
    assert described(compiled(x)) == described(model(x)) and not compiled.recompiles


def test_attributes_on_paths():
    def function(x):
        y = x + 1
        if x.sum() > 2:
            y = x * 2
            y.label = "twice"
        return y, getattr(y, "label", None)

    compiled = monograph.compile(function)
    for value in (1.0, 3.0, 1.0):
        x = torch.full((2,), value)
        assert described(compiled(x)) == described(function(x))


def test_attributes_of_plain_results():
    def function(x):
        y = x + 1
        y.label, y.parts = "y", [x * 2, 3]
        return y, y

    compiled, x = monograph.compile(function), torch.ones(2)
    for _ in range(2):
        result, again = compiled(x)
        assert result is again and result.label == "y"
        assert described(result) == described(function(x)[0])


CLASSES = {
    "type of a tensor": lambda x: x + 1 if type(x) is torch.Tensor else x,
    "__class__ of a tensor": lambda x: x + 1 if x.__class__ is torch.Tensor else x,
    "by class": lambda x: {torch.Tensor: lambda v: v + 1, int: None}[type(x)](x),
    "a parameter made inside": lambda x: x + len(type(torch.nn.Parameter(x.detach())).__name__),
    "a float": lambda x: (n := x.sum().item(), type(n) is float, n.__class__ is float, isinstance(n, float)),
    "an integer": lambda x: (n := x.long().sum().item(), type(n) is int, n.__class__ is int, isinstance(n, int)),
    "a bool": lambda x: (n := (x.sum() > 1).item(), type(n) is bool, n.__class__ is bool, isinstance(n, bool)),
    "a size": lambda x: (type(x.shape[0]) is int, x.shape[0].__class__ is int, type(x.shape) is torch.Size),
    "an array": lambda x: type(x.numpy()).__name__,
    "what makes classes": lambda x: (type("Made", (), {"v": 3})().v, isinstance(int, type), issubclass(type, type)),
    "attributes": lambda x: (dict(vars(x)), dict(x.__dict__), hasattr(x, "label")),
    "a copy": lambda x: copy.copy(x).add_(1),
    "the same memory": lambda x: (x.is_set_to(x), x.is_set_to(x.detach()), x.is_set_to(x + 1), x.is_set_to(x[:1])),
}


@pytest.mark.parametrize("name", list(CLASSES))
@pytest.mark.parametrize("dynamic", [None, True])
def test_what_python_is_told_of_values(name, dynamic):
    function = CLASSES[name]
    compiled = monograph.compile(function, dynamic=dynamic)
    for size in (3, 4):
        ours, theirs = torch.arange(float(size)), torch.arange(float(size))
        assert described(compiled(ours)) == described(function(theirs)) and described(ours) == described(theirs)
    assert "type" not in globals()
