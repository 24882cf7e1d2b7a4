"""Modes of the process and the thread that change what eager does: grad mode, autocast, default dtype, ...

The states that matter are listed once, in `STATES`; each becomes a fact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from monograph import compat
from monograph.capture.guards import Fact

__all__ = ["STATES", "ambient_facts", "modes_active"]

STATES: dict[str, Callable[..., Any]] = {
    "grad mode": torch.is_grad_enabled,
    "inference mode": torch.is_inference_mode_enabled,
    "default dtype": torch.get_default_dtype,
    "deterministic algorithms": torch.are_deterministic_algorithms_enabled,
    "torch function modes": compat.function_mode_depth,
    "torch dispatch modes": compat.dispatch_mode_depth,
    "functorch transforms": compat.functorch_level,
    "forward-mode differentiation": compat.forward_ad_level,
    "TorchScript tracing": torch.jit.is_tracing,
}


def ambient_facts() -> list[Fact]:
    """Facts on the modes as they are now, cheap ones; call them in the state the trace started in."""
    facts = [Fact(name, "{0}()", (read,), "same", read()) for name, read in STATES.items()]
    autocast = torch.is_autocast_enabled("cpu")
    facts.append(Fact("autocast", "{0}('cpu')", (torch.is_autocast_enabled,), "same", autocast))
    if autocast:
        dtype = torch.get_autocast_dtype("cpu")
        facts.append(Fact("autocast dtype", "{0}('cpu')", (torch.get_autocast_dtype,), "same", dtype))
    for name, hooks in compat.global_module_hooks().items():
        facts.append(Fact(f"global module hooks ({name})", "{0} == {1}", (hooks, dict(hooks))) if hooks
                     else Fact(f"global module hooks ({name})", "not {0}", (hooks,)))
    return facts


def modes_active() -> bool:
    """Whether something sees every torch call (a trace, fake tensors, functorch, a user's mode): none may be hidden."""
    return (compat.dispatch_mode_depth() > 0 or compat.functorch_level() is not None
            or compat.function_mode_depth() > compat.device_modes()
            or compat.forward_ad_level() >= 0 or torch.jit.is_tracing())
