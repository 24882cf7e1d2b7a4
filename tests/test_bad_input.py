"""What a call cannot take is told by one error: what, where and what to do. Eager's own errors stay eager's."""

import math
import sys
import warnings

import numpy as np
import pytest
import torch
from torch import nn

import monograph


def held_by_itself(kind):
    inner = [torch.ones(2)]
    inner.append({"again": inner} if kind is dict else inner)
    return inner


@pytest.mark.parametrize("kind", [list, dict])
def test_containers_that_hold_themselves(kind):
    with pytest.raises(monograph.InputError, match="holds itself"):
        monograph.compile(lambda held: held[0] + 1)(held_by_itself(kind))


def test_deep_containers_are_no_cycles():
    """What overflows Python's stack for its depth says so in Python's words."""
    nested = torch.ones(2)
    for _ in range(2 * sys.getrecursionlimit()):
        nested = [nested]
    with pytest.raises(RecursionError):
        monograph.compile(lambda nested: 1)(nested)


@pytest.mark.parametrize("size", [0, 8])
def test_a_tensor_without_its_memory(size):
    x = torch.ones(4)
    x.untyped_storage().resize_(size)
    for call in (monograph.compile(lambda x: x + 1), lambda x: monograph.capture(lambda x: x + 1, x)):
        with pytest.raises(monograph.InputError, match="has elements beyond its memory"):
            call(x)
    module = nn.Linear(2, 2)
    module.weight.untyped_storage().resize_(size)
    with pytest.raises(monograph.InputError, match="parameter weight has elements beyond its memory"):
        monograph.compile(module)(torch.ones(1, 2))


def test_a_parameter_on_another_device_names_the_way():
    with pytest.raises(monograph.DeviceError, match="parameter weight is on device meta(.|\n)*to_empty"):
        monograph.compile(nn.Linear(2, 2, device="meta"))(torch.ones(1, 2))


def linear():
    torch.manual_seed(0)
    return nn.Linear(3, 4)


@pytest.mark.parametrize("function, args", [
    (linear(), (torch.ones(2, 5),)), (linear(), (torch.ones(()),)), (linear(), (torch.ones(2, 3, dtype=torch.int64),)),
    (linear(), (torch.ones(2, 3, dtype=torch.float64),)), (linear(), ("abc",)), (linear(), (None,)), (linear(), ()),
    (linear(), (torch.ones(2, 3), 1)),
    (lambda x, n: x + n, (torch.ones(3, dtype=torch.int64), 1 << 80)), (lambda x, n: x + n, (torch.ones(3), 1 << 80)),
    (lambda x, n: x + n, (torch.ones(3, dtype=torch.int8), 300)),
    (lambda x, n: x + n, (torch.ones(3, dtype=torch.int64), 1 << 63)),
    (lambda x, n: x * n, (torch.ones(3, dtype=torch.int32), 1 << 40)),
    (lambda x, n: x.new_zeros(n), (torch.ones(3), 1 << 62)), (lambda x, n: x.new_zeros(n), (torch.ones(3), -3)),
    (lambda x, n: x.expand(n, 3) + 1, (torch.ones(3), 1 << 42)),
    (lambda x, n: x + n, (torch.tensor([math.nan, 1.0]), math.nan)), (lambda x, n: x + n, (torch.ones(2), -math.inf)),
    (lambda a: torch.from_numpy(a), (np.array(["a"]),)), (lambda d: d["x"] + 1, ({"y": torch.ones(2)},)),
    (lambda x: x[7], (torch.ones(3),)), (lambda x: x.add_(1), (torch.ones(1).expand(3),)),
])
def test_as_eager(function, args):
    """Twice: the second call meets what the first one left."""
    compiled = monograph.compile(function)
    for _ in range(2):
        assert outcome(compiled, args) == outcome(function, args)


def outcome(function, args):
    with torch.no_grad():
        try:
            return repr(function(*args))
        except Exception as error:
            return type(error), str(error)


def test_a_closed_file():
    with open(__file__) as file:
        pass
    with pytest.raises(ValueError, match="I/O operation on closed file"):
        monograph.compile(lambda x, file: x + len(file.read()))(torch.ones(2), file)
    assert monograph.compile(lambda x, file: x + 1)(torch.ones(2), file).tolist() == [2, 2]
    with pytest.raises(monograph.InputError, match=r"argument args\[1\] is a TextIOWrapper and cannot be copied"):
        monograph.verify(lambda x, file: x + 1, [(torch.ones(2), file)])


def test_verify_takes_tensors_with_a_history():
    x = torch.ones(3, requires_grad=True) * 2
    assert monograph.verify(lambda x, y: (x * y, x), [(x, x)]).calls == 1


def test_verify_raises_what_eager_raises():
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes"):
        monograph.verify(linear(), [(torch.ones(2, 5),)])


def test_a_cache_directory_that_cannot_be_had_is_told_at_the_users_line(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("monograph.cache.is_stable", lambda: True)
    monkeypatch.setenv("MONOGRAPH_CACHE_DIR", str(tmp_path / "file"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert monograph.compile(lambda x: x * 3)(torch.ones(2)).tolist() == [3, 3]
    told, = caught
    assert told.filename == __file__ and told.category is RuntimeWarning and "is not a directory" in str(told.message)


def test_the_debug_directory_is_for_torch_compile_too(tmp_path, monkeypatch):
    monkeypatch.setenv("MONOGRAPH_DEBUG", str(tmp_path))
    monkeypatch.setattr("monograph.backend.observer", None)
    torch.compile(lambda x: x * 4, backend="monograph")(torch.ones(2))
    assert list(tmp_path.rglob("kernels.ll"))
