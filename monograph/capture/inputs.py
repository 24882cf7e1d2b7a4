"""Real tensors entering a trace: arguments, parameters, buffers, whatever else the code meets.

    Entry ::= real tensor, its fake, where it comes from

The first tensor of a storage is the base that becomes the graph input. Another one must lie inside it,
else the trace starts again with that storage as one flat dimension.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import torch

from monograph import compat, errors
from monograph.capture.captured import Binding
from monograph.capture.dims import dims
from monograph.capture.layout import Layout
from monograph.capture.symbols import Sizes
from monograph.ir.graph import Graph, Source
from monograph.ir.types import TensorType

__all__ = ["Entry", "Fakes", "Restart", "add_graph_input", "check_supported", "flat_like", "lies_inside"]


class Restart(Exception):
    """Trace again with the real storage `storage_id` as a flat base. Never leaves the driver."""

    def __init__(self, storage_id: int) -> None:
        self.storage_id = storage_id
        super().__init__(storage_id)


@dataclass(slots=True)
class Entry:
    """One real tensor of the trace. `layout` and `home` (storage id) are the fake's when it entered."""

    real: torch.Tensor
    fake: torch.Tensor
    source: Source
    binding: Binding
    layout: Layout
    home: int
    version: int                     # of the real tensor, before the trace
    grad: Any                        # its .grad, before the trace
    leaf: torch.Tensor | None = None   # the fake leaf whose gradient is the argument's, when it requires grad
    history: Any = None              # grad_fn of the fake when it entered
    input: int | None = None         # graph input, when it is a base or its identity is returned


class Fakes:
    """Fakes of real tensors; tensors that share a storage get fakes that share one."""

    def __init__(self, mode: Any, sizes: Sizes) -> None:
        self.mode = mode
        self.sizes = sizes
        self.storages: dict[int, torch.UntypedStorage] = {}
        self.symbolic: dict[int, tuple[torch.Tensor, Any]] = {}      # id(real) -> the first fake, how it lies

    def make(self, real: torch.Tensor, path: str | None = None) -> torch.Tensor:
        """`path`: where the sizes that may be symbols are named; None, they are those of `real`."""
        key = compat.storage_id(real)
        storage = self.storages.get(key)
        if storage is None and path is not None:
            lies = self.sizes.place(path, real)
            if lies is not None:
                fake = compat.fake_sized(self.mode, *lies, int(real.storage_offset()), real.dtype)
                self.storages[key] = fake.untyped_storage()
                self.symbolic[id(real)] = fake, Layout.of(fake)
                return fake
        if id(real) in self.symbolic:
            return compat.fake_view(self.mode, *self.symbolic[id(real)])
        if storage is None:
            size = real.untyped_storage().nbytes()
            storage = self.storages[key] = torch.UntypedStorage(size, device="meta")
        return compat.fake_from_storage(self.mode, storage, real)


NO_WORD = re.compile(r"\W")
DENSE = "the graph has plain dense values"


def check_supported(tensor: torch.Tensor, what: str) -> None:
    """DeviceError or UnsupportedError, by name, for a tensor the compiler does not take."""
    kind = type(tensor)
    if compat.dispatches(kind) or issubclass(kind, compat.FakeTensor):
        refusal = errors.UnsupportedError(f"{what} is a {kind.__name__}, a tensor without data of its own", why=DENSE,
                                          hint="pass or return what it wraps, or keep it in the module")
        refusal.wraps = compat.opens(kind)
        raise refusal
    if tensor.layout is not torch.strided:
        raise errors.UnsupportedError(f"{what} is sparse ({tensor.layout})", why=DENSE, hint="pass it as .to_dense()")
    if tensor.is_quantized:
        raise errors.UnsupportedError(f"{what} is quantized ({tensor.dtype})", why=DENSE,
                                      hint="pass it as .dequantize()")
    if tensor.is_nested:
        raise errors.UnsupportedError(f"{what} is a nested tensor", why=DENSE,
                                      hint="pass its values padded, or its parts")
    if tensor.device.type != "cpu":
        raise errors.DeviceError(f"{what} is on device {tensor.device}; only the CPU is supported",
                                 hint="move it with .cpu(), or off `meta` with .to_empty(device='cpu')")
    if tensor.numel():
        last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride())) + tensor.storage_offset()
        if (last + 1) * tensor.element_size() > tensor.untyped_storage().nbytes():
            raise errors.InputError(f"{what} has elements beyond its memory: the storage was freed or made smaller",
                                    hint="give it memory again: resize_ its storage and fill it")


def flat_like(tensor: torch.Tensor) -> torch.Tensor:
    """The whole storage of a tensor (fake or real) as one dimension of its dtype."""
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    return tensor.detach().as_strided((count,), (1,), 0)


def lies_inside(layout: Layout, base: Layout) -> bool:
    """Whether index arithmetic over `base` reaches all of `layout`."""
    return bool(layout.dtype == base.dtype and base.is_dense() and layout.is_backed and layout.fits(base))


def add_graph_input(graph: Graph, entry: Entry, layout: Layout, *, flat: bool = False) -> int:
    """A graph input for `entry`, or for the storage behind it; its number. Sources are unique."""
    type = TensorType(layout.dtype, dims(layout.sizes), "cpu", dims(layout.strides))
    source = Source(entry.source.kind, f"memory of {entry.source.path}") if flat else entry.source
    graph.add_input(type, _hint(entry.source.path), source)
    return len(graph.inputs) - 1


def _hint(path: str) -> str:
    """A printable name from a path such as `args[0]` or `encoder.layer.0.weight`."""
    return NO_WORD.sub("_", path).strip("_")
