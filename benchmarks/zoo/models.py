"""A tiny instance of a `transformers` family: random weights, outputs of order 1, inputs that eager accepts.

    families() -> names                 every model type with a base model
    make(name) -> Instance              NotBuilt says why there is none
"""

from __future__ import annotations

import copy
import time
import warnings
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_MAPPING, MODEL_MAPPING_NAMES

from benchmarks.zoo.configs import SCALES, Scale, shrink
from benchmarks.zoo.inputs import Tensors, candidates

__all__ = ["Instance", "NotBuilt", "families", "make"]

LARGEST = 40_000_000        # parameters
PATIENCE = 20.0             # seconds of the processor's time to try


class NotBuilt(Exception):
    """`stage`: config, model, inputs; the message is the last error."""

    def __init__(self, stage: str, why: str) -> None:
        self.stage = stage
        super().__init__(why)


@dataclass
class Instance:
    """`model` in eval mode, keyword `inputs`, eager's result; `scale` says how small it is."""

    model: torch.nn.Module
    inputs: Tensors
    expected: Any
    scale: Scale


def families() -> list[str]:
    return sorted(MODEL_MAPPING_NAMES)


def make(name: str) -> Instance:
    """The smallest instance that runs, the same at every call."""
    try:
        default = CONFIG_MAPPING[name]()
    except Exception as error:             # of any class: some have no default
        raise NotBuilt("config", _line(error)) from error
    last = NotBuilt("config", "no scale fits")
    start = time.process_time()
    for scale in SCALES:
        if time.process_time() - start > PATIENCE:
            break
        torch.manual_seed(0)
        try:
            return _instance(default, scale)
        except NotBuilt as error:
            if last.stage != "inputs":
                last = error
    raise last


def _instance(default: PreTrainedConfig, scale: Scale) -> Instance:
    try:
        config = shrink(default, scale)
    except Exception as error:             # a config may check itself
        raise NotBuilt("config", _line(error)) from error
    try:
        kind = MODEL_MAPPING[type(config)]
    except ValueError as error:            # named there, but not part of the package
        raise NotBuilt("model", _line(error)) from error
    kind = kind[0] if isinstance(kind, (list, tuple)) else kind
    try:
        with torch.device("meta"):
            size = sum(parameter.numel() for parameter in kind(copy.deepcopy(config)).parameters())
    except Exception:                      # some cannot be made without memory
        size = 0
    if size > LARGEST:
        raise NotBuilt("model", f"{size} parameters")
    try:
        model = kind(config).eval()
    except Exception as error:             # a model may dislike a size
        raise NotBuilt("model", _line(error)) from error
    rescale(model)
    why: list[Exception] = []
    for inputs in candidates(model):
        twin = copy.deepcopy(model)        # running may leave traces
        try:
            expected = run(twin, inputs)
        except Exception as error:         # wrong inputs raise anything
            why.append(error)
            continue
        return Instance(model, inputs, expected, scale)
    raise NotBuilt("inputs", _line(why[0]) if why else "none are known for its signature")


def run(model: Any, inputs: Tensors) -> Any:
    """One call without grad, from a fixed seed."""
    torch.manual_seed(1)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model(**{name: value.clone() for name, value in inputs.items()})


def rescale(model: torch.nn.Module) -> None:
    """Weights as after training rather than as initialised: products keep the variance of their input."""
    with torch.no_grad():
        for module in model.modules():
            weight = getattr(module, "weight", None)
            if isinstance(module, (torch.nn.Linear, torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)) \
                    and isinstance(weight, torch.nn.Parameter) and weight.numel():
                weight.normal_(0.0, weight[0].numel()**-0.5)
                if module.bias is not None:
                    module.bias.normal_(0.0, 0.1)
        for parameter in model.parameters():
            if parameter.dim() == 3 and parameter.is_floating_point() and not parameter.isfinite().all():
                parameter.normal_(0.0, parameter.shape[-1]**-0.5)


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"[:300]
