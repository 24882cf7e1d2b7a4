"""`.grad` and `.data` of tensors that the caller has.

A gradient that is read is the caller's own, and which tensor it is (or that there is none) becomes a fact: see
`Captured.gradients`. What would leave a tensor of the trace on a real one is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from monograph import compat, errors
from monograph.capture import blame
from monograph.capture.layout import Layout

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["BACKWARD", "attribute", "check_gradients", "lie_alike"]

GRAD: Any = Tensor.grad
DATA: Any = Tensor.data
READ = GRAD.__get__
WRITES = (GRAD.__set__, GRAD.__delete__)
SET_DATA = DATA.__set__
ACCESS = type(READ)
BACKWARD = "compile the module or the function of the loss, and call backward() and the optimiser outside of it"


def attribute(tracer: Tracer, func: Any, args: Any) -> Any:
    """The answer to a function that may be a read or write of an attribute; NotImplemented where torch shall answer."""
    if type(func) is not ACCESS:
        return NotImplemented
    tensor = args[0]
    entry = tracer.by_fake.get(id(tensor))
    if entry is None and (isinstance(tensor, compat.FakeTensor) or compat.is_functorch_tensor(tensor)):   # made inside
        return NotImplemented
    real = tensor if entry is None else entry.real
    if func == SET_DATA and entry is None:
        if _is_its_own(tracer, tensor, args[1]):
            return None
        raise _refusal("`.data =` on a tensor that is not an argument")
    if func in WRITES and (len(args) < 2 or args[1] is not tensor.grad):
        raise _refusal("the program sets the gradient of a tensor that the caller has")
    if func != READ or (entry is not None and tensor.grad is not None):
        return NotImplemented
    tracer.gradients[id(real)] = real, real.grad
    return real.grad


def check_gradients(tracer: Tracer) -> None:
    """UnsupportedError where `backward()` has just given a gradient to a tensor that the caller has."""
    for entry in tracer.entries:
        given = entry.real.is_leaf and entry.real.grad is not entry.grad
        if given or entry.leaf is not None and entry.leaf.grad is not None:
            frame = blame.user_frame(3)
            raise errors.UnsupportedError(
                f"`{blame.expression(frame)}` writes the gradient of {entry.source}", loc=blame.location(frame),
                why="the trace runs once for many calls, and nothing would do this again", hint=BACKWARD)


def _is_its_own(tracer: Tracer, tensor: torch.Tensor, data: Any) -> bool:
    """Whether `tensor.data = data` changes nothing: `module.to(dtype)` sets what is there already."""
    if not isinstance(data, torch.Tensor) or data.dtype is not tensor.dtype:
        return False
    with torch._C.DisableTorchFunction(), torch.no_grad():
        return lie_alike(tracer.lift(tensor), tracer.lift(data))


def lie_alike(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    """Whether two fakes are the same elements of the same memory."""
    return compat.storage_id(ours) == compat.storage_id(theirs) and Layout.of(ours).key == Layout.of(theirs).key


def _refusal(what: str) -> errors.UnsupportedError:
    return errors.UnsupportedError(what, loc=blame.location(blame.user_frame(4)),
                                   why="the caller's tensor would have to change while the graph is made",
                                   hint="do this outside of the compiled function")
