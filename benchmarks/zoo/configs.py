"""Small configs of `transformers` families, made from the default ones by rules over field names.

    shrink(config, scale) -> a config of the same class

Widths are divided by one factor throughout and head counts by another, so that what had to divide or equal
something still does. Layers, vocabularies, experts, positions and images are capped. Fields that the class derives
from others are left to it. Not every family bears every factor: `SCALES` lists what to try, smallest first. A scale
that is `filled` takes lists that the class gives for its own rather than derived, and gives what no default says.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedConfig, ResNetConfig, TimmBackboneConfig

__all__ = ["SCALES", "Scale", "shrink", "walk"]

VOCABULARY = 512
POSITIONS = 512


@dataclass(frozen=True)
class Scale:
    """Divisors of widths per head and of head counts; layers at most; whether images shrink; see above."""

    width: int
    heads: int
    layers: int
    images: bool = True
    filled: bool = False


SCALES = (
    Scale(8, 4, 2), Scale(2, 4, 2), Scale(8, 4, 2, filled=True), Scale(2, 4, 2, filled=True), Scale(8, 1, 2),
    Scale(1, 16, 2), Scale(4, 1, 2), Scale(8, 1, 2, False), Scale(8, 1, 4), Scale(8, 1, 99), Scale(1, 4, 2),
    Scale(1, 4, 2, filled=True), Scale(2, 1, 2, filled=True), Scale(2, 1, 2), Scale(1, 1, 2), Scale(8, 1, 99, False),
    Scale(1, 1, 2, False), Scale(1, 1, 99, False),
)

BASE = {field.name for field in dataclasses.fields(PreTrainedConfig)}

TOKEN = re.compile(r"(token_id|token_index|token_ids|token_idx)$")
VOCAB = re.compile(r"vocab.*size|vocab$|^codebook_size$|^num_embeddings$")
SHARED = re.compile(r"shared_layers$")
LAYERS = re.compile(
    r"(^|_)n?_?(layers?|blocks?|depths?)$|^num_.*layers$|layers_per|stage_num|numb_of_layers|^num_.*flows$|repeats$")
NOT_LAYERS = re.compile(r"max_window|dense|feature_layer|window|mem_blocks")
EXPERTS = re.compile(r"(routed|local|num|moe_num|zero)_experts$|^num_experts|^moe_num_experts$|expert_num")
TOP = re.compile(r"(experts_per_tok|top_?k|topk_group|n_group|num_expert_group)")
QUERIES = re.compile(r"^num_queries$|num_object_queries|num_query_tokens|num_denoising|num_detection_tokens")
POSITION = re.compile(r"^max.*position|^n_positions$|^n_ctx$|context_length|^max_seq|^max_.*length$|^seq_len")
WINDOW = re.compile(r"^(sliding_window|attention_window|local_attn_chunk|lsh_attn_chunk|attention_chunk_size)")
IMAGE = re.compile(r"image_size$|^img_size$|^pretrain_image_size$|^input_size$")
FEATURES = re.compile(r"feature_sizes$")          # of an image
HEADS = re.compile(
    r"(?<!_d)(^|_)n?_?heads?(_per_stage)?$|num_query_groups|num_key_value_heads|mamba_ngroups|^n_kv_heads$")
PER_HEAD = re.compile(r"head_?dim|^d_kv$|d_head$|head_size$|key_dim$|value_dim$|rotary_dim|lora_rank|mrope|qk_")
WIDTH = re.compile(
    r"hidden|embed|intermediate|ffn|mlp|inner|model|channel|feature|latent|bottleneck|rank|state|dim|width|filter|^d_|"
    r"^n_embd|units|proj|pooler|conv_dim|lstm|n_inner|d_ssm|_size$")
NOT_WIDTH = re.compile(
    r"patch|tubelet|kernel|stride|window|image|vocab|chunk|block|batch|mel|bins|num_pos|groups|padding|dilation|queue|"
    r"ratio|factor|_layers|layer_|input_dim|input_size|feature_size|feat_size|in_feat|positions?_embeddings|mask_|"
    r"num_channels|voxel|bucket|shrink|init|max_|sampl|conv_kernel_dim|pool_size")
INDICES = re.compile(
    r"ind(ex|ice)e?s$|layer_ids$|target_layers$|feature_layers?$|layers_idx|^out_indices$|attention_blocks$|_idxs$")


def walk(config: PreTrainedConfig) -> Iterator[PreTrainedConfig]:
    """`config` and those inside it."""
    yield config
    for value in vars(config).values():
        if isinstance(value, PreTrainedConfig):
            yield from walk(value)


def shrink(config: PreTrainedConfig, scale: Scale) -> PreTrainedConfig:
    small = _Shrink(config, scale).config(config)
    text, vision = getattr(small, "text_config", None), getattr(small, "vision_config", None)
    for part in walk(small):
        _mend_rotation(part)
        if scale.filled:
            _fill(part)
    if text is not None and vision is not None:       # defaults are of checkpoints of different sizes
        if hasattr(vision, "out_hidden_size"):
            vision.out_hidden_size = text.hidden_size
        elif {"embed_dim", "hidden_size"} <= set(vars(vision)):
            vision.hidden_size = text.hidden_size
    if text is not None and hasattr(audio := getattr(small, "audio_config", None), "output_dim"):
        audio.output_dim = text.hidden_size
    projector, encoder = getattr(small, "projector_config", None), getattr(small, "encoder_config", None)
    if hasattr(projector, "encoder_hidden_size") and encoder is not None:
        projector.encoder_hidden_size = getattr(encoder, "hidden_dim", None) or encoder.hidden_size
    return small


def _mend_rotation(config: Any) -> None:
    """Sections of a head that turn by time, height and width: models assume those of a published checkpoint."""
    if "mrope_section" not in getattr(config, "ignore_keys_at_rope_validation", ()) \
            or not isinstance(config.rope_parameters, dict):
        return
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    half = int(head * config.rope_parameters.get("partial_rotary_factor", 1.0)) // 2
    config.rope_parameters["mrope_section"] = [half - 2 * (half // 3), half // 3, half // 3]


# What some classes leave open though their models need it.
OPEN: dict[str, Callable[[Any], Any]] = {
    "head_dim": lambda config: config.hidden_size // config.num_attention_heads,
    "num_key_value_heads": lambda config: config.num_attention_heads,
    "layer_types": lambda config: ["full_attention"] * config.num_hidden_layers,
    "attn_layer_indices": lambda config: [1],
    "mlp_layer_types": lambda config: ["dense"] * config.num_hidden_layers,
    "prediction_length": lambda config: 8,
    "context_length": lambda config: 16,
    "num_experts": lambda config: 8,
    "n_routed_experts": lambda config: 8,
    "num_experts_per_tok": lambda config: 2,
    "top_k_experts": lambda config: 2,
    "n_shared_experts": lambda config: 1,
    "n_group": lambda config: 1,
    "topk_group": lambda config: 1,
    "moe_intermediate_size": lambda config: 32,
    "pad_token_id": lambda config: 1,
    "mask_token_id": lambda config: 2,
    "image_token_id": lambda config: 8,
    "image_token_index": lambda config: 8,
    "audio_token_id": lambda config: 9,
    "vocabulary_map": lambda config: {"<image>": 8},
}


def _fill(config: Any) -> None:
    for name, value in OPEN.items():
        if getattr(config, name, 0) is None:
            try:
                setattr(config, name, value(config))
            except (AttributeError, TypeError):       # it lacks what the value is made of
                continue


class _Shrink:
    def __init__(self, root: PreTrainedConfig, scale: Scale) -> None:
        self.scale = scale
        large = sorted({number for part in walk(root) for name, value in vars(part).items() if TOKEN.search(name)
                        for number in (value if isinstance(value, (list, tuple)) else [value])
                        if isinstance(number, int) and number >= VOCABULARY - 100})
        self.tokens = {token: VOCABULARY - len(large) + place for place, token in enumerate(large)}

    def config(self, config: PreTrainedConfig) -> PreTrainedConfig:
        """Fields as the class would derive them are left out, and those of the base class."""
        derived = _default(type(config))
        layers, kept = self._layers(config)
        given = {}
        for field in dataclasses.fields(config):
            if field.name not in vars(config):                 # one for each layer: left to the class
                continue
            value = vars(config)[field.name]
            if isinstance(value, TimmBackboneConfig):          # timm is another package
                given[field.name] = self.config(_backbone(value))
            elif isinstance(value, PreTrainedConfig):
                given[field.name] = self.config(value)
            elif field.default is None and derived is not None and value == getattr(derived, field.name, None) \
                    and not isinstance(value, dict) and not TOKEN.search(field.name) and field.name != "vocab_size" \
                    and not (self.scale.filled and isinstance(value, (list, tuple))):
                continue
            elif field.name not in BASE or TOKEN.search(field.name):
                given[field.name] = self._field(config, field.name, value, layers, kept)
        return type(config)(**given)

    def _layers(self, config: PreTrainedConfig) -> tuple[int, list[int]]:
        """How many layers there were, and which stay: enough for every kind of them."""
        count = next((value for name in ("num_hidden_layers", "n_layer", "num_layers", "depth", "encoder_layers")
                      if isinstance(value := getattr(config, name, None), int)), 0)
        kinds = getattr(config, "layer_types", None) or getattr(config, "layers_block_type", None) or []
        wanted = self.scale.layers
        if isinstance(kinds, (list, tuple)) and len(set(map(str, kinds))) > 1:
            wanted = max(wanted, min(6, 1 + max(list(map(str, kinds)).index(kind) for kind in set(map(str, kinds)))))
        return count, list(range(min(count, wanted)))

    def _field(self, config: Any, name: str, value: Any, layers: int, kept: list[int]) -> Any:
        if isinstance(value, dict):
            return {key: self._section(entry) if "section" in str(key) else entry for key, entry in value.items()}
        if isinstance(value, (list, tuple)):
            if INDICES.search(name) and all(isinstance(entry, int) for entry in value):
                return type(value)(entry for entry in value if entry < max(len(kept), 1)) or type(value)([0])
            if len(value) == layers > len(kept) and not LAYERS.search(name):
                value = type(value)(value[place] for place in kept)
            if "section" in name:
                return self._section(value)
            return type(value)(self._field(config, name, entry, 0, kept) for entry in value)
        if value is None and name == "vocab_size":
            return VOCABULARY
        if type(value) is not int:
            return value
        return self._number(config, name, value, len(kept))

    def _section(self, value: Any) -> Any:
        """Parts of a head's width."""
        if not isinstance(value, (list, tuple)) or not all(isinstance(entry, int) for entry in value):
            return value
        total = sum(value) // self.scale.width
        parts = [max(1, entry // self.scale.width) for entry in value]
        parts[parts.index(max(parts))] += total - sum(parts)
        return type(value)(parts)

    def _number(self, config: Any, name: str, value: int, layers: int) -> int:
        scale = self.scale
        if TOKEN.search(name):
            return self.tokens.get(value, value)
        if VOCAB.search(name):
            return min(value, VOCABULARY)
        if SHARED.search(name):
            return 0
        if LAYERS.search(name) and not NOT_LAYERS.search(name):
            return min(value, max(scale.layers, layers if "hidden" in name or "num_layers" in name else 0))
        for pattern, most in ((TOP, 2), (EXPERTS, 8), (QUERIES, 10), (WINDOW, 8)):
            if pattern.search(name):
                return min(value, most)
        if POSITION.search(name):
            return min(value, 64 if "source" in name else POSITIONS)
        if FEATURES.search(name):
            image = getattr(getattr(config, "backbone_config", config), "image_size", None)
            side = image[0] if isinstance(image, (list, tuple)) else image
            return value * _image(config) // side if scale.images and isinstance(side, int) else value
        if IMAGE.search(name):
            return min(value, _image(config)) if scale.images else value
        if HEADS.search(name):
            return _divided(value, scale.heads)
        if PER_HEAD.search(name):
            return _divided(value, scale.width)
        if WIDTH.search(name) and not NOT_WIDTH.search(name) and value >= 16:
            return _divided(value, scale.width * scale.heads)
        return value


def _backbone(wanted: TimmBackboneConfig) -> PreTrainedConfig:
    """A ResNet with as many outputs."""
    last = len(wanted.out_indices or [4])
    return ResNetConfig(out_features=[f"stage{stage}" for stage in range(5 - last, 5)], layer_type="basic",
                        num_channels=wanted.num_channels)


def _image(config: Any) -> int:
    """Some patches each way."""
    patch = getattr(config, "patch_size", None)
    if isinstance(patch, (list, tuple)):
        patch = max((entry for entry in patch if isinstance(entry, int)), default=None)
    if not isinstance(patch, int):
        return 64
    return max(32, patch * (8 if patch <= 8 else 4))


def _divided(value: int, factor: int) -> int:
    return value // math.gcd(value, factor)


def _default(kind: type[PreTrainedConfig]) -> PreTrainedConfig | None:
    try:
        return kind()
    except Exception:                      # of any class: some have no default
        return None
