"""The models of the benchmarks: real architectures from `transformers` configs, random weights, fixed seed."""

from __future__ import annotations

from collections.abc import Callable

import torch
import transformers

__all__ = ["MODELS", "bert_base", "calibrate", "gpt2_small", "resnet50", "vit_base"]

Inputs = dict[str, torch.Tensor]


def bert_base() -> tuple[torch.nn.Module, Inputs]:
    """BERT-base, one sequence of 128 tokens."""
    torch.manual_seed(0)
    model = transformers.BertModel(transformers.BertConfig()).eval()
    return model, {"input_ids": torch.randint(0, model.config.vocab_size, (1, 128))}


def gpt2_small() -> tuple[torch.nn.Module, Inputs]:
    """GPT-2 small with its language-model head, one sequence of 128 tokens."""
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval()
    return model, {"input_ids": torch.randint(0, model.config.vocab_size, (1, 128))}


def vit_base() -> tuple[torch.nn.Module, Inputs]:
    """ViT-B/16, one 224 x 224 image."""
    torch.manual_seed(0)
    model = transformers.ViTModel(transformers.ViTConfig()).eval()
    return model, {"pixel_values": torch.randn(1, 3, 224, 224)}


def resnet50() -> tuple[torch.nn.Module, Inputs]:
    """ResNet-50 with its classifier, one 224 x 224 image."""
    torch.manual_seed(0)
    model = transformers.ResNetForImageClassification(transformers.ResNetConfig()).eval()
    calibrate(model, {"pixel_values": torch.randn(2, 3, 224, 224)})
    return model, {"pixel_values": torch.randn(1, 3, 224, 224)}


def calibrate(model: torch.nn.Module, inputs: Inputs) -> None:
    """Set the running statistics of every batch norm to those of `inputs`, so that outputs are of order 1."""
    norms = [module for module in model.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0
    if norms:
        with torch.no_grad():
            model.train()(**inputs)
    for norm in norms:
        norm.momentum = 0.1
    model.eval()


MODELS: dict[str, Callable[[], tuple[torch.nn.Module, Inputs]]] = {
    "BERT-base": bert_base,
    "ResNet-50": resnet50,
    "ViT-B/16": vit_base,
    "GPT-2 small": gpt2_small,
}
