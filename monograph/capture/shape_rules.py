"""Shapes and strides that torch's fake kernels get wrong or compute slowly.

    rule(tracer, func, args, kwargs) -> fake result | NotImplemented (ask torch's fake kernel)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

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


TABLE: dict[Any, Rule] = {}
