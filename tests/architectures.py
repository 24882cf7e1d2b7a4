"""Small instances of real `transformers` architectures: random weights, outputs of order 1.

Each entry is a factory `() -> (model in eval mode, keyword inputs)`. Mixtures of experts are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers as hf

from benchmarks.models import calibrate

__all__ = ["ARCHITECTURES", "build"]

TEXT: dict[str, Any] = dict(
    vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=64,
)
VISION: dict[str, Any] = dict(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8,
)


def _ids(length: int = 13, vocabulary: int = 99) -> torch.Tensor:
    return torch.randint(3, vocabulary, (2, length))


def _text() -> dict[str, Any]:
    mask = torch.ones(2, 13, dtype=torch.long)
    mask[1, 9:] = 0
    return {"input_ids": _ids(), "attention_mask": mask}


def _plain_text() -> dict[str, Any]:
    return {"input_ids": _ids()}


def _image(size: int = 32) -> dict[str, Any]:
    return {"pixel_values": torch.randn(2, 3, size, size)}


def _sequence_to_sequence() -> dict[str, Any]:
    return {"input_ids": _ids(), "decoder_input_ids": _ids(7)}


def _audio(samples: int = 1600) -> dict[str, Any]:
    return {"input_values": torch.randn(2, samples)}


def _wav2vec2(config: type, **extra: Any) -> Any:
    return config(
        vocab_size=32, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        conv_dim=(16, 16), conv_stride=(5, 2), conv_kernel=(10, 3), num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2, feat_extract_norm="group", **extra,
    )


def _clip() -> Any:
    text = {**TEXT, "bos_token_id": 0, "eos_token_id": 98, "projection_dim": 16}
    return hf.CLIPConfig(text_config=text, vision_config={**VISION, "projection_dim": 16}, projection_dim=16)


def _clip_inputs() -> dict[str, Any]:
    return {**_text(), **_image()}


ARCHITECTURES: dict[str, tuple[Callable[[], torch.nn.Module], Callable[[], dict[str, Any]]]] = {
    # text, encoders
    "bert": (lambda: hf.BertModel(hf.BertConfig(**TEXT)), _text),
    "roberta": (lambda: hf.RobertaModel(hf.RobertaConfig(**TEXT, pad_token_id=1)), _text),
    "distilbert": (lambda: hf.DistilBertModel(hf.DistilBertConfig(
        vocab_size=99, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=64)), _text),
    "electra": (lambda: hf.ElectraModel(hf.ElectraConfig(**TEXT, embedding_size=16)), _text),
    "albert": (lambda: hf.AlbertModel(hf.AlbertConfig(**TEXT, embedding_size=16)), _text),
    "mpnet": (lambda: hf.MPNetModel(hf.MPNetConfig(**TEXT)), _text),
    "deberta": (lambda: hf.DebertaV2Model(hf.DebertaV2Config(
        **TEXT, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8)), _text),
    # text, decoders
    "gpt2": (lambda: hf.GPT2LMHeadModel(hf.GPT2Config(
        vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64)), _plain_text),
    "opt": (lambda: hf.OPTForCausalLM(hf.OPTConfig(
        vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64,
        max_position_embeddings=64, word_embed_proj_dim=32)), _text),
    "bloom": (lambda: hf.BloomModel(hf.BloomConfig(vocab_size=99, hidden_size=32, n_layer=2, n_head=4)), _text),
    "llama": (lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**TEXT, num_key_value_heads=2)), _plain_text),
    "mistral": (
        lambda: hf.MistralModel(hf.MistralConfig(**TEXT, num_key_value_heads=2, sliding_window=8)), _plain_text),
    "qwen2": (lambda: hf.Qwen2ForCausalLM(hf.Qwen2Config(**TEXT, num_key_value_heads=2)), _text),
    "gemma": (lambda: hf.GemmaModel(hf.GemmaConfig(**TEXT, num_key_value_heads=2, head_dim=8)), _plain_text),
    "phi": (lambda: hf.PhiModel(hf.PhiConfig(**TEXT)), _plain_text),
    # sequence to sequence
    "t5": (lambda: hf.T5Model(hf.T5Config(
        vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)), _sequence_to_sequence),
    "bart": (lambda: hf.BartModel(hf.BartConfig(
        vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=64)),
        _sequence_to_sequence),
    # vision
    "vit": (lambda: hf.ViTModel(hf.ViTConfig(**VISION)), _image),
    "deit": (lambda: hf.DeiTModel(hf.DeiTConfig(**VISION)), _image),
    "beit": (lambda: hf.BeitModel(hf.BeitConfig(**VISION, use_relative_position_bias=True)), _image),
    "dinov2": (lambda: hf.Dinov2Model(hf.Dinov2Config(**VISION)), _image),
    "resnet": (lambda: hf.ResNetModel(hf.ResNetConfig(
        embedding_size=8, hidden_sizes=[16, 32], depths=[1, 2], layer_type="bottleneck")), _image),
    "convnext": (
        lambda: hf.ConvNextModel(hf.ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2)), _image),
    "swin": (lambda: hf.SwinModel(hf.SwinConfig(
        image_size=32, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4)), _image),
    "segformer": (lambda: hf.SegformerModel(hf.SegformerConfig(
        num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[16, 32], patch_sizes=[7, 3],
        strides=[4, 2], num_attention_heads=[2, 4], mlp_ratios=[2, 2])), _image),
    "mobilenet_v2": (lambda: hf.MobileNetV2Model(hf.MobileNetV2Config(depth_multiplier=0.25)), lambda: _image(64)),
    # audio
    "wav2vec2": (lambda: hf.Wav2Vec2Model(_wav2vec2(hf.Wav2Vec2Config)), _audio),
    "hubert": (lambda: hf.HubertModel(_wav2vec2(hf.HubertConfig)), _audio),
    "whisper": (lambda: hf.WhisperModel(hf.WhisperConfig(
        vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=16,
        max_source_positions=20, max_target_positions=32, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=1)),
        lambda: {"input_features": torch.randn(2, 16, 40), "decoder_input_ids": _ids(7)}),
    # multimodal
    "clip": (lambda: hf.CLIPModel(_clip()), _clip_inputs),
    "siglip": (lambda: hf.SiglipModel(hf.SiglipConfig(text_config=TEXT, vision_config=VISION)), _clip_inputs),
}


def build(name: str) -> tuple[torch.nn.Module, dict[str, Any]]:
    """The model `name` in eval mode and its inputs, the same at every call."""
    torch.manual_seed(0)
    model_factory, input_factory = ARCHITECTURES[name]
    model = model_factory().eval()
    _scale(model)
    inputs = input_factory()
    calibrate(model, {name: torch.randn(16, *value.shape[1:]) for name, value in inputs.items()})
    return model, inputs


def _scale(model: torch.nn.Module) -> None:
    """Weights as after training rather than as initialised: products keep the variance of their input."""
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, (torch.nn.Linear, torch.nn.Conv1d, torch.nn.Conv2d)):
                fan_in = module.weight[0].numel()
                module.weight.normal_(0.0, fan_in**-0.5)
                if module.bias is not None:
                    module.bias.normal_(0.0, 0.1)
