"""Whatever may change of a weight's look is seen in memory; what leaves the look alone is not held against it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import monograph
from monograph.capture.guards import TensorFacts
from monograph.capture.guards_versions import layouts
from monograph.runtime import probe
from monograph.watched_weights import WatchedWeights, watching


class Named(nn.Parameter):
    pass


def weights() -> list[Tensor]:
    base = torch.zeros(6, 4)
    return [nn.Parameter(torch.zeros(3, 4)), torch.zeros(4, 4), nn.Parameter(torch.zeros(3), requires_grad=False),
            base[1:], torch.zeros(1, 2, 1, 2, 1, 2), torch.zeros(2, requires_grad=True) * 2, torch.zeros(())]


def looked_at(tensors: list[Tensor]) -> Callable[[], bool]:
    facts = TensorFacts(tensors, [""] * len(tensors))
    return watching(tensors, lambda: facts.check(*tensors))


def data(value: Callable[[], Tensor]) -> Callable[[Tensor], Any]:
    return lambda tensor: setattr(tensor, "data", value())


CHANGES: dict[str, tuple[int, Callable[[Tensor], Any]]] = {
    "sizes": (0, data(lambda: torch.zeros(4, 3))),
    "strides": (0, data(lambda: torch.zeros(4, 3).t())),
    "number of dims": (0, data(lambda: torch.zeros(3, 4, 1))),
    "more dims than lie in the tensor itself": (1, data(lambda: torch.zeros(4, 4, 1, 1, 1, 1, 1))),
    "dtype": (0, data(lambda: torch.zeros(3, 4, dtype=torch.float64))),
    "device": (1, lambda tensor: torch.utils.swap_tensors(tensor, torch.zeros(4, 4, device="meta"))),
    "conjugation": (1, data(lambda: torch.zeros(4, 4, dtype=torch.complex64).conj())),
    "no grad": (0, lambda tensor: tensor.requires_grad_(False)),
    "grad": (1, lambda tensor: tensor.requires_grad_()),
    "grad of a parameter": (2, lambda tensor: tensor.requires_grad_()),
    "history": (1, lambda tensor: tensor.mul_(torch.ones(1, requires_grad=True))),
    "history of a parameter": (2, lambda tensor: tensor.mul_(torch.ones(1, requires_grad=True))),
    "class": (0, lambda tensor: setattr(tensor, "__class__", Named)),
    "resized": (1, lambda tensor: tensor.resize_(2, 2)),
    "order of dims in memory": (1, lambda tensor: tensor.t_()),
    "view": (3, lambda tensor: tensor.t_()),
    "history of the base of a view": (3, lambda tensor: tensor._base.mul_(torch.ones(1, requires_grad=True))),
    "many dims": (4, lambda tensor: tensor.transpose_(0, 1)),
    "what was computed": (5, lambda tensor: tensor.detach_()),
    "number": (6, lambda tensor: tensor.unsqueeze_(0)),
    "another tensor behind the object": (1, lambda tensor: torch.utils.swap_tensors(tensor, torch.zeros(2))),
}


@pytest.mark.parametrize("name", list(CHANGES))
def test_a_change_is_seen(name: str) -> None:
    number, change = CHANGES[name]
    tensors = weights()
    facts = TensorFacts(tensors, [""] * len(tensors))
    holds = watching(tensors, lambda: facts.check(*tensors))
    assert holds() and holds()
    change(tensors[number])
    assert not facts.check(*tensors)
    assert not holds() and not holds()


HARMLESS: dict[str, Callable[[list[Tensor]], Any]] = {
    "values": lambda tensors: tensors[0].data.add_(1),
    "memory": lambda tensors: setattr(tensors[0], "data", torch.ones(3, 4)),
    "gradient": lambda tensors: (tensors[0] * 2).sum().backward(),
    "gradient of what requires none": lambda tensors: setattr(tensors[2], "grad", torch.zeros(3)),
    "hook": lambda tensors: tensors[0].register_hook(lambda gradient: gradient),
    "to and fro": lambda tensors: tensors[1].requires_grad_().requires_grad_(False),
    "another tensor behind the object": lambda tensors: torch.utils.swap_tensors(tensors[1], torch.zeros(4, 4)),
}


@pytest.mark.parametrize("name", list(HARMLESS))
def test_what_does_not_change_the_look(name: str) -> None:
    tensors = weights()
    holds = looked_at(tensors)
    HARMLESS[name](tensors)
    assert holds() and holds()
    tensors[1].requires_grad_()
    assert not holds()


def test_a_look_that_comes_back_is_taken_over() -> None:
    tensors = weights()
    holds = looked_at(tensors)
    before = tensors[1].data
    tensors[1].data = torch.zeros(2, 8)
    assert not holds()
    tensors[1].data = before
    assert holds()


def test_words_are_found() -> None:
    tensors = weights()
    found = looked_at(tensors)
    known = bool(layouts()) and probe.layout() is not None
    assert isinstance(getattr(found, "__self__", None), WatchedWeights) == known


def test_where_torch_keeps_it_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "autograd", lambda: None)
    tensors = weights()
    holds = looked_at(tensors)
    assert holds()
    tensors[0].requires_grad_(False)
    assert not holds()


def test_weights_that_come_to_share_memory() -> None:
    found = []
    for compiled in (False, True):
        read, written, mine = torch.ones(4), torch.ones(8)[2:6], torch.ones(4)

        def program(x: Tensor, read: Tensor = read, written: Tensor = written) -> Tensor:
            written.mul_(x)
            return read + x

        call = monograph.compile(program, backend="reference") if compiled else program
        results = [call(mine).clone()]
        for memory in (written.data, written.data.as_strided((4,), (1,), 1), torch.zeros(4), mine, mine.clone()):
            read.data = memory
            mine.add_(1)
            results.append(call(mine).clone())
        written.data = mine
        results += [call(mine).clone(), call(mine).clone(), written.clone(), read.clone()]
        found.append(torch.stack(results))
    assert torch.equal(*found)
