"""One graph as one kernel, against the reference evaluator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from monograph.codegen import jit
from monograph.ir.graph import Graph, Value
from monograph.ir.types import TensorType
from monograph.loops import interpret, verifier
from monograph.loops.lower import lower
from monograph.loops.nodes import Kernel
from monograph.ops import families
from monograph.ops.build import Builder
from monograph.ops.evaluate import evaluate
from monograph.schedule import roles
from monograph.schedule.kernel import Domain, Fused, Schedule

__all__ = ["Case", "agree", "check_native", "close"]

Make = Callable[..., Any]


class Case:
    """`make(builder, *values)` as one kernel on `inputs`."""

    def __init__(self, make: Make, *inputs: torch.Tensor, domain: Domain | None = None) -> None:
        self.inputs = inputs
        self.graph = Graph()
        values = [
            self.graph.add_input(TensorType(x.dtype, tuple(x.shape), strides=x.stride()), f"x{i}")
            for i, x in enumerate(inputs)
        ]
        made = make(lambda name, *args, **kwargs: _call(self.graph, name, *args, **kwargs), *values)
        self.graph.outputs = [made] if isinstance(made, Value) else list(made)
        item = Fused(list(self.graph.nodes), values, list(dict.fromkeys(self.graph.outputs)), domain or self.domain())
        self.kernel: Kernel = lower(item, Schedule(self.graph), "kernel")
        self.outputs = item.outputs

    def domain(self) -> Domain:
        for node in self.graph.nodes:
            if families.family(node) in ("reduction", "scan") or node.op.name.split(".")[1] in SELF_FOLDING:
                shape = node.inputs[0].tensor.shape
                dims = (len(shape) - 1,) if "layer_norm" in node.op.name else roles.reduced_dims(node)
                return Domain(shape, dims)     # type: ignore[arg-type]
        return Domain(self.graph.outputs[0].tensor.shape)   # type: ignore[arg-type]

    def buffers(self) -> list[torch.Tensor]:
        return [torch.empty(v.tensor.shape, dtype=v.tensor.dtype) for v in self.outputs]    # type: ignore[arg-type]

    def reference(self) -> list[torch.Tensor]:
        graph = self.graph
        graph.outputs = list(self.outputs)
        return evaluate(graph, list(self.inputs))

    def interpreted(self) -> list[torch.Tensor]:
        verifier.verify(self.kernel)
        outputs = self.buffers()
        fault = interpret.run(self.kernel, [*self.inputs, *outputs])
        assert fault is None, fault
        return outputs

    def fault(self) -> interpret.Fault | None:
        verifier.verify(self.kernel)
        return interpret.run(self.kernel, [*self.inputs, *self.buffers()])

    def native(self) -> list[torch.Tensor]:
        outputs = self.buffers()
        assert jit.load([self.kernel])["kernel"]([*self.inputs, *outputs]) is None
        return outputs


SELF_FOLDING = ("_softmax", "_log_softmax", "native_layer_norm", "var", "std", "mean", "logsumexp", "var_mean")


def _call(graph: Graph, name: str, *args: Any, **kwargs: Any) -> Any:
    return Builder(graph).call(name if name.startswith("prims.") else f"aten.{name}", *args, **kwargs)


def close(got: Sequence[torch.Tensor], want: Sequence[torch.Tensor], ulps: float = 0) -> None:
    """Equal dtype, shape and values; floats within a few units in the last place (NaN equal NaN)."""
    assert len(got) == len(want)
    for x, y in zip(got, want):
        assert x.dtype is y.dtype and x.shape == y.shape, (x.dtype, y.dtype, x.shape, y.shape)
        eps = torch.finfo(x.dtype).eps * ulps if x.dtype.is_floating_point else 0.0
        torch.testing.assert_close(x, y, rtol=eps, atol=eps, equal_nan=True)


def agree(
    make: Make, *inputs: torch.Tensor, ulps: float = 0, native: bool = True, domain: Domain | None = None
) -> Case:
    """Interpreter (and native code) give what torch gives."""
    case = Case(make, *inputs, domain=domain)
    want = case.reference()
    close(case.interpreted(), want, ulps)
    if native:
        close(case.native(), want, max(ulps, 4))
    return case


def check_native(cases: Sequence[tuple[str, Case, float]]) -> None:
    """Native code gives what torch gives; all kernels are compiled together."""
    for i, (_, case, _) in enumerate(cases):
        case.kernel.name = f"kernel{i}"
    loaded = jit.load([case.kernel for _, case, _ in cases])
    for name, case, ulps in cases:
        outputs = case.buffers()
        assert loaded[case.kernel.name]([*case.inputs, *outputs]) is None, name
        try:
            close(outputs, case.reference(), max(ulps, 4))
        except AssertionError as error:
            raise AssertionError(name) from error
