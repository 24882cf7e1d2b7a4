"""Shapes and strides that torch's fake kernels get wrong or compute slowly.

    rule(tracer, func, args, kwargs) -> fake result | NotImplemented (ask torch's fake kernel)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from monograph.capture import by_example

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["KEPT_WHOLE", "TABLE"]

aten = torch.ops.aten
Rule = Callable[["Tracer", Any, Any, Any], Any]

# Composites recorded as one node: opened, they lose what templates want to see. They arrive here
# only where autograd does not need to look inside.
KEPT_WHOLE = frozenset({
    aten.linear.default, aten.scaled_dot_product_attention.default,
    aten.linalg_svdvals.default, aten.linalg_eigvalsh.default,     # eager leaves out the vectors, for fakes it does not
    aten.lstm.input, aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input,
})


def as_in_eager(tracer: Tracer, func: Any, args: Any, kwargs: Any) -> Any:
    """Fake kernels that give other sizes than eager: ask eager."""
    return by_example.result_or_error(tracer.mode, func, args, kwargs, None)


TABLE: dict[Any, Rule] = {
    aten._embedding_bag.default: as_in_eager,
    aten._embedding_bag_forward_only.default: as_in_eager,
}
