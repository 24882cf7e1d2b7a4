"""Whole models from `transformers`, small and random: results, state and gradients equal eager's."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from monograph.capture import trace
from monograph.ops.evaluate import evaluate
from tests.capture.harness import execute, normal, weights_of

transformers = pytest.importorskip("transformers")
torch.set_num_threads(1)

TEXT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 99,
        "max_position_embeddings": 64}
VISION = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
          "image_size": 32, "patch_size": 8}
MODELS: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {}


def model(fn: Any) -> Any:
    MODELS[fn.__name__] = fn
    return fn


def ids(length: int = 16) -> torch.Tensor:
    return torch.randint(3, 96, (2, length))


def mask() -> torch.Tensor:
    return torch.tensor([[1] * 16, [1] * 13 + [0] * 3])


@model
def bert():
    return transformers.BertModel(transformers.BertConfig(**TEXT)), {"input_ids": ids(), "attention_mask": mask()}


@model
def gpt2():
    config = transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=99, n_positions=64, bos_token_id=1,
                                     eos_token_id=1)
    return transformers.GPT2LMHeadModel(config), {"input_ids": ids(), "use_cache": True}


@model
def llama():
    config = transformers.LlamaConfig(**TEXT, num_key_value_heads=2)
    return transformers.LlamaForCausalLM(config), {"input_ids": ids(), "attention_mask": mask(), "use_cache": True}


@model
def t5():
    config = transformers.T5Config(d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, vocab_size=99,
                                   decoder_start_token_id=0)
    return transformers.T5ForConditionalGeneration(config), {"input_ids": ids(), "decoder_input_ids": ids(8)}


@model
def vit():
    return transformers.ViTModel(transformers.ViTConfig(**VISION)), {"pixel_values": torch.randn(2, 3, 32, 32)}


@model
def resnet():
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic")
    return transformers.ResNetModel(config), {"pixel_values": torch.randn(2, 3, 32, 32)}


@model
def clip():
    text = {**TEXT, "eos_token_id": 98, "bos_token_id": 97, "pad_token_id": 1}
    config = transformers.CLIPConfig(text_config=text, vision_config=VISION, projection_dim=16)
    inputs = {"input_ids": ids(), "attention_mask": mask(), "pixel_values": torch.randn(2, 3, 32, 32)}
    return transformers.CLIPModel(config), inputs


@model
def whisper():
    config = transformers.WhisperConfig(
        d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=64, decoder_ffn_dim=64, vocab_size=99, num_mel_bins=8, max_source_positions=30,
        max_target_positions=40, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3)
    return transformers.WhisperModel(config), {"input_features": torch.randn(2, 8, 60), "decoder_input_ids": ids(8)}


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Every tensor in a result, caches and other objects opened."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [leaf for entry in value for leaf in tensors_in(entry)]
    if isinstance(value, dict):
        return tensors_in(list(value.values()))
    return tensors_in(list(vars(value).values())) if hasattr(value, "__dict__") else []


@pytest.mark.parametrize("train", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("name", MODELS)
def test_forward(name: str, train: bool) -> None:
    torch.manual_seed(0)
    ours, inputs = MODELS[name]()
    ours.train(train)
    eager = copy.deepcopy(ours)
    with torch.no_grad():
        torch.manual_seed(1)
        expected = eager(**inputs)
        captured = trace(ours, (), inputs)
        torch.manual_seed(1)
        actual = execute(captured, (), inputs)
    assert type(actual) is type(expected)
    left, right = tensors_in(expected), tensors_in(actual)
    assert len(left) == len(right) > 0
    for a, b in zip(left, right, strict=True):
        assert normal(a) == normal(b)
        torch.testing.assert_close(b, a)
    for (key, a), (_, b) in zip(eager.state_dict().items(), ours.state_dict().items(), strict=True):
        torch.testing.assert_close(b, a, msg=key)
    assert all(node.loc is not None for node in captured.graph.nodes)
    paths = {s.path for s in captured.graph.sources if s.kind in ("parameter", "buffer")}
    assert paths <= {n for n, _ in ours.named_parameters()} | {n for n, _ in ours.named_buffers()}


@pytest.mark.parametrize("name", ["bert", "gpt2", "resnet"])
def test_gradients(name: str) -> None:
    torch.manual_seed(0)
    ours, inputs = MODELS[name]()
    eager = copy.deepcopy(ours)
    torch.manual_seed(1)
    results = [t for t in tensors_in(eager(**inputs)) if t.requires_grad]
    weights = weights_of(results)
    parameters = dict(eager.named_parameters())
    expected = torch.autograd.grad(results, list(parameters.values()), weights, allow_unused=True)
    captured = trace(ours, (), inputs)
    joint = captured.joint
    assert joint is not None
    torch.manual_seed(1)
    tangents: Any = dict(zip(sorted(joint.tangents), weights, strict=True))
    values = [binding.resolve(pytree.tree_leaves(((), inputs)), tangents) for binding in captured.bindings]
    outputs = evaluate(captured.graph, values)
    found = {id(values[i]): outputs[j] for i, j in joint.gradients.items()}
    for (key, parameter), gradient in zip(ours.named_parameters(), expected, strict=True):
        mine = found.get(id(parameter))
        assert (mine is None) == (gradient is None), key
        if gradient is not None:
            assert mine.stride() == gradient.stride(), key
            torch.testing.assert_close(mine, gradient, rtol=1e-3, atol=1e-4, msg=key)
