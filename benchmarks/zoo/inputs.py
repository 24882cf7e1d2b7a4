"""Inputs for a model that is known by its config and the signature of its `forward` alone.

    candidates(model) -> keyword arguments, richest first

Each name that the signature has and `MAKERS` knows gets one or more tensors; what the model accepts is found by
trying. Placeholders of images and sounds in a text are as many as the model makes features of them.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from benchmarks.zoo.configs import TOKEN, walk

__all__ = ["candidates"]

Tensors = dict[str, torch.Tensor]
LENGTH, SHORT, IMAGES, SAMPLES = 12, 7, 2, 1600
TRIES = 30

TEXT = ("input_ids", "attention_mask", "decoder_input_ids", "bbox", "mm_token_type_ids", "inputs", "text_embeds",
        "classes_input_ids", "classes_attention_mask", "tasks_input_ids", "tasks_attention_mask", "qformer_input_ids",
        "task_inputs", "audio_codes", "lang_ids")
IMAGE = ("pixel_values", "image_grid_thw", "image_sizes", "pixel_attention_mask", "spatial_shapes", "grid_thw",
         "pixel_position_ids", "image_position_ids", "image_grid_hw", "merge_sizes", "image_merge_sizes",
         "pixel_values_videos", "flattened_patches", "image_attention_mask")
AUDIO = ("input_features", "input_values", "input_features_mask", "feature_attention_mask", "audio_values",
         "audio_mel", "audio_mel_mask", "feature_lens", "padding_mask")


class Maker:
    """Tensors by name. `batch`: entries of everything but placeholders."""

    def __init__(self, model: Any, batch: int) -> None:
        self.model, self.config, self.batch = model, model.config, batch
        self.parts = list(walk(model.config))
        self.signature = inspect.signature(model.forward).parameters
        self.special = {value for part in self.parts for name, value in vars(part).items()
                        if TOKEN.search(name) and isinstance(value, int)}

    def find(self, *names: str, default: Any = None, near: tuple[str, ...] = ()) -> Any:
        """The first of `names` that a config has as a number; configs that also have one of `near` come first."""
        parts = sorted(self.parts, key=lambda part: not any(hasattr(part, name) for name in near))
        for part in parts:
            for name in names:
                value = getattr(part, name, None)
                if isinstance(value, (list, tuple)) and value and isinstance(value[0], int):
                    return list(value)
                if isinstance(value, int) and not isinstance(value, bool):
                    return value
        return default

    def number(self, *names: str, default: int = 1, near: tuple[str, ...] = ()) -> int:
        found = self.find(*names, default=default, near=near)
        return found[-1] if isinstance(found, list) else found

    # -- text --------------------------------------------------------------------------

    def ids(self, length: int, batch: int | None = None) -> torch.Tensor:
        vocabulary = self.number("vocab_size", "codebook_size", "decoder_vocab_size", default=100)
        allowed = [token for token in range(min(vocabulary, 400)) if token not in self.special and token > 2] or [1]
        return torch.tensor(allowed)[torch.randint(0, len(allowed), (batch or self.batch, length))]

    def codes(self) -> Iterator[torch.Tensor]:
        books = self.number("num_codebooks", default=0)
        if books:
            yield torch.randint(0, 30, (self.batch, LENGTH, books))
            yield torch.randint(0, 30, (self.batch, LENGTH, books + 1))        # beside a text

    def mask(self, length: int) -> torch.Tensor:
        return torch.ones(self.batch, length, dtype=torch.long)

    def boxes(self) -> torch.Tensor:
        corner = torch.randint(0, 50, (self.batch, LENGTH, 2))
        return torch.cat([corner, corner + 10], -1)

    # -- images ------------------------------------------------------------------------

    @property
    def size(self) -> tuple[int, int]:
        size = self.find("image_size", "img_size", "input_size", "size", default=64, near=("patch_size",))
        return (size[0], size[-1]) if isinstance(size, list) else (size, size)

    @property
    def channels(self) -> int:
        value = self.number("num_channels", "in_channels", "in_chans", "num_input_channels", default=3,
                            near=("image_size", "patch_size"))
        return value if value <= 16 else 3

    @property
    def patch(self) -> int:
        return self.number("patch_size", "spatial_patch_size", default=16, near=("image_size", "spatial_merge_size"))

    def grid(self) -> torch.Tensor:
        merge = self.number("spatial_merge_size", "merge_size", default=2)
        return torch.tensor([[1, 2 * merge, 4 * merge]])

    def images(self) -> Iterator[torch.Tensor]:
        high, wide = self.size
        if {"image_grid_thw", "grid_thw", "image_grid_hw"} & set(self.signature):
            rows = int(self.grid().prod())
            frames = self.number("temporal_patch_size", "patch_temporal", default=1)
            yield torch.randn(rows, self.channels * frames * self.patch**2)
            yield torch.randn(rows, self.channels, self.patch, self.patch)
            yield torch.randn(1, rows, self.channels * frames * self.patch**2)
        if {"spatial_shapes", "pixel_position_ids", "image_position_ids"} & set(self.signature):
            yield torch.randn(self.batch, 16, self.channels * self.patch**2)
        yield torch.randn(self.batch, self.channels, high, wide)
        frames = self.number("num_frames", "frames_per_clip", "num_image_frames", default=2)
        yield torch.randn(self.batch, 1, self.channels, high, wide)
        yield torch.randn(self.batch, frames, self.channels, high, wide)
        yield torch.randn(self.batch, 3, self.channels, high, wide)
        yield torch.randn(self.batch, self.channels, 64, 64)
        yield torch.randn(self.batch, self.channels, 224, 224)

    def positions(self) -> torch.Tensor:
        rows = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="xy"), -1).reshape(1, 16, 2)
        return rows.expand(self.batch, -1, -1).contiguous()

    # -- sounds and series -------------------------------------------------------------

    @property
    def bins(self) -> int:
        return self.number("feature_projection_input_dim", "num_mel_bins", "n_mels", "input_feat_per_channel",
                           "num_mel_filters", "input_feat_size", "mel_bins", "input_dim", "input_size", "feature_size",
                           default=80) * self.number("num_stacked_frames", default=1)

    def spectrogram(self) -> Iterator[torch.Tensor]:
        bins = self.bins
        positions = self.number("max_source_positions", "max_position_embeddings", default=0,
                                near=("max_source_positions",))
        longest = self.number("max_length", "spec_size", default=64, near=("num_mel_bins",))
        window = self.number("n_window", default=0)
        for length in (64, 2 * window, 2 * positions, 4 * positions, longest, 128, 3000):
            if length:
                yield torch.randn(self.batch, length, bins)
                yield torch.randn(self.batch, bins, length)
        yield torch.randn(self.batch, 1, longest, bins)

    def waves(self) -> Iterator[torch.Tensor]:
        yield torch.randn(self.batch, SAMPLES)
        yield torch.randn(self.batch, self.number("audio_channels", "channels", default=1), SAMPLES)
        yield torch.randn(self.batch, 1, 16000)
        yield torch.randn(self.batch, 1920)
        yield from self.spectrogram()

    def past(self) -> torch.Tensor:
        lags = self.find("lags_sequence", default=[0])
        steps = self.number("context_length", "prediction_length", default=32) + max(lags)
        return torch.randn(self.batch, steps, *([self.number("input_size", "num_input_channels", default=1)]
                           if self.number("input_size", "num_input_channels", default=1) > 1 else []))

    def encoded(self) -> Iterator[torch.Tensor]:
        width = self.number("hidden_size", "d_model", default=64)
        for names in (("encoder_hidden_size",), ("cross_attention_hidden_size",), ("hidden_size", "d_model")):
            yield torch.randn(self.batch, SHORT, self.number(*names, default=width))

    def hidden(self) -> Iterator[torch.Tensor]:
        width = self.number("hidden_size", "d_model", "embed_dim", default=64)
        if "grid_thw" in self.signature:
            yield next(self.images())
        yield torch.randn(self.batch, LENGTH, width)
        yield torch.randn(self.batch, width, LENGTH)
        yield torch.randn(self.batch, LENGTH, self.number("encoder_hidden_size", "input_size", default=width))


def of_one(make: Callable[[Maker], torch.Tensor]) -> Callable[[Maker], list[torch.Tensor]]:
    return lambda maker: [make(maker)]


MAKERS: dict[str, Callable[[Maker], Any]] = {
    "input_ids": lambda m: [m.ids(LENGTH), *m.codes(), m.ids(128)],
    "attention_mask": of_one(lambda m: m.mask(LENGTH)),
    "decoder_input_ids": of_one(lambda m: m.ids(SHORT)),
    "lang_ids": of_one(lambda m: torch.zeros(m.batch, dtype=torch.long)),
    "image_attention_mask": of_one(lambda m: torch.ones(m.batch, LENGTH, 1, dtype=torch.long)),
    "classes_input_ids": of_one(lambda m: m.ids(LENGTH)),
    "classes_attention_mask": of_one(lambda m: m.mask(LENGTH)),
    "tasks_input_ids": of_one(lambda m: m.ids(LENGTH)),
    "tasks_attention_mask": of_one(lambda m: m.mask(LENGTH)),
    "qformer_input_ids": of_one(lambda m: m.ids(LENGTH)),
    "task_inputs": of_one(lambda m: m.ids(77)),
    "bbox": of_one(Maker.boxes),
    "mm_token_type_ids": of_one(lambda m: 0 * m.mask(LENGTH)),
    "audio_codes": of_one(lambda m: torch.randint(0, 30, (m.batch, m.number("num_codebooks", default=4), LENGTH))),
    "inputs": lambda m: [torch.randn(m.batch, LENGTH, m.number("d_model", default=64)), m.ids(LENGTH)],
    "pixel_values": Maker.images,
    "pixel_values_videos": lambda m: [
        torch.randn(m.batch, frames, m.channels, *m.size)
        for frames in (m.number("num_frames", "frames_per_clip", default=2), 16, 64)],
    "prompt_pixel_values": of_one(lambda m: torch.randn(m.batch, m.channels, *m.size)),
    "prompt_masks": of_one(lambda m: torch.randn(m.batch, m.channels, *m.size)),
    "image_grid_thw": of_one(Maker.grid),
    "grid_thw": of_one(Maker.grid),
    "image_grid_hw": of_one(lambda m: m.grid()[:, 1:]),
    "merge_sizes": of_one(lambda m: torch.tensor([m.number("spatial_merge_size", default=2)])),
    "image_merge_sizes": of_one(lambda m: torch.tensor([m.number("spatial_merge_size", default=2)])),
    "image_sizes": of_one(lambda m: torch.tensor([m.size] * m.batch)),
    "pixel_attention_mask": lambda m: [torch.ones(m.batch, 1, *m.size, dtype=torch.long),
                                       torch.ones(m.batch, 16, dtype=torch.long)],
    "spatial_shapes": of_one(lambda m: torch.tensor([[4, 4]] * m.batch)),
    "pixel_position_ids": of_one(Maker.positions),
    "image_position_ids": of_one(Maker.positions),
    "flattened_patches": of_one(lambda m: torch.randn(m.batch, 16, m.channels * m.patch**2 + 2)),
    "input_features": Maker.spectrogram,
    "audio_mel": Maker.spectrogram,
    "audio_mel_mask": of_one(lambda m: torch.zeros(m.batch, 64, dtype=torch.bool)),
    "input_values": Maker.waves,
    "audio_values": Maker.waves,
    "input_features_mask": of_one(lambda m: m.mask(64)),
    "feature_attention_mask": of_one(lambda m: m.mask(64)),
    "feature_lens": of_one(lambda m: torch.tensor([64] * m.batch)),
    "padding_mask": of_one(lambda m: m.mask(SAMPLES)),
    "hidden_states": Maker.hidden,
    "inputs_embeds": Maker.hidden,
    "query_embeds": Maker.hidden,
    "latents": Maker.hidden,
    "encoder_hidden_states": Maker.encoded,
    "action_embeds": Maker.hidden,
    "noise_embeds": Maker.hidden,
    "past_values": lambda m: [m.past(), m.past()[..., None]],
    "past_observed_mask": lambda m: [torch.ones_like(m.past()), torch.ones_like(m.past()[..., None])],
    "past_time_features": of_one(lambda m: torch.randn(
        m.batch, m.past().shape[1], m.number("num_time_features", default=1))),
    "past_values_padding": of_one(lambda m: torch.zeros(m.past().shape)),
    "freq": of_one(lambda m: torch.zeros(m.batch, 1, dtype=torch.long)),
    "states": of_one(lambda m: torch.randn(m.batch, SHORT, m.number("state_dim"))),
    "actions": of_one(lambda m: torch.randn(m.batch, SHORT, m.number("act_dim"))),
    "rewards": of_one(lambda m: torch.randn(m.batch, SHORT, 1)),
    "returns_to_go": of_one(lambda m: torch.randn(m.batch, SHORT, 1)),
    "timesteps": of_one(lambda m: torch.arange(SHORT).expand(m.batch, -1).contiguous()),
    "visual_feats": of_one(lambda m: torch.randn(m.batch, SHORT, m.number("visual_feat_dim"))),
    "visual_pos": of_one(lambda m: torch.rand(m.batch, SHORT, m.number("visual_pos_dim"))),
    "flattened": of_one(lambda m: torch.randn(m.batch, 16, 64)),
}
REQUIRED_BY_SOME = ("encoder_hidden_states",)      # though the signature has a default
ALWAYS = {"states", "actions", "rewards", "returns_to_go", "timesteps", "visual_feats", "visual_pos", "past_values",
          "past_time_features", "past_observed_mask"}


def candidates(model: Any) -> Iterator[Tensors]:
    """At most `TRIES` sets of keyword arguments; tensors are fresh in each."""
    names = list(inspect.signature(model.forward).parameters)
    yield from itertools.islice(_candidates(model, names), TRIES)


def _candidates(model: Any, names: list[str]) -> Iterator[Tensors]:
    known = [name for name in names if name in MAKERS and name not in REQUIRED_BY_SOME]
    required = {name for name, parameter in inspect.signature(model.forward).parameters.items()
                if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD}
    if "pixel_values" in known and "pixel_values_videos" in known and "pixel_values_videos" not in required:
        known.remove("pixel_values_videos")
    first = known[0] if known else None
    groups = [[name for name in known if name in group] for group in (TEXT, IMAGE, AUDIO)]
    text, image, audio = groups
    plans = [text + image + audio, text + image, text + audio, image, audio, text, [first] if first else []]
    seen = set()
    for plan in plans:
        wanted = [name for name in known if name in plan or name in required or name in ALWAYS]
        if "input_ids" not in wanted and "attention_mask" not in required:     # of frames, whose number the model knows
            wanted = [name for name in wanted if name != "attention_mask"]
        if wanted and tuple(wanted) not in seen:
            seen.add(tuple(wanted))
            yield from _with_placeholders(model, wanted)
            if "attention_mask" in wanted and "attention_mask" not in required:
                yield from _with_placeholders(model, [name for name in wanted if name != "attention_mask"])
    for extra in REQUIRED_BY_SOME:
        if extra in names and first:
            yield from _with_placeholders(model, [first, extra])
    if isinstance(getattr(model, "dummy_inputs", None), dict):
        yield dict(model.dummy_inputs)


def _with_placeholders(model: Any, names: list[str]) -> Iterator[Tensors]:
    """Inputs by name, with as many placeholders in the text as there are features."""
    places = [(kind, token) for kind, inputs in (("image", IMAGE), ("audio", AUDIO))
              if "input_ids" in names and set(names) & set(inputs)
              and isinstance(token := next((value for name in (f"{kind}_token_id", f"{kind}_token_index")
                                            if (value := getattr(model.config, name, None)) is not None), None), int)]
    maker = Maker(model, 1 if places else 2)
    for choice in itertools.islice(itertools.product(*(list(MAKERS[name](maker)) for name in names)), 16):
        given = dict(zip(names, choice, strict=True))
        _mask_features(given, maker.bins)
        for kind, token in places:
            count = _features(model, kind, given)
            if count and given["input_ids"].dim() == 2:
                _insert(given, token, count, kind)
        if "attention_mask" in given and "input_ids" in given:
            given["attention_mask"] = torch.ones(given["input_ids"].shape[:2], dtype=torch.long)
            if not places:
                given["attention_mask"][1, 9:] = 0
        yield given


def _features(model: Any, kind: str, given: Tensors) -> int | None:
    """How many rows the model makes of an image or a sound; None where it does not say."""
    method = getattr(model, f"get_{kind}_features", None)
    if method is None:
        return None
    accepted = inspect.signature(method).parameters
    try:
        with torch.no_grad():
            result = method(**{name: value for name, value in given.items() if name in accepted})
    except Exception:                      # wrong inputs raise anything; the next candidate is tried
        return None
    result = getattr(result, "pooler_output", result)
    if isinstance(result, torch.Tensor):
        return result.numel() // result.shape[-1]
    if isinstance(result, (list, tuple)) and all(isinstance(entry, torch.Tensor) for entry in result):
        return sum(entry.numel() // entry.shape[-1] for entry in result)
    return None


def _mask_features(given: Tensors, bins: int) -> None:
    """Masks of frames are as long as what they mask: [batch, frames, bins] or [batch, bins, frames]."""
    features = given.get("input_features")
    for name in {"input_features_mask", "feature_attention_mask"} & given.keys():
        if features is not None and features.dim() == 3:
            given[name] = torch.ones(features.shape[0], features.shape[1 if features.shape[2] == bins else 2],
                                     dtype=torch.long)


def _insert(given: Tensors, token: int, count: int, kind: str) -> None:
    """Placeholders after the first token."""
    ids = given["input_ids"]
    given["input_ids"] = torch.cat([ids[:, :1], ids.new_full((1, count), token), ids[:, 1:]], 1)
    if "mm_token_type_ids" in given:
        given["mm_token_type_ids"] = (given["input_ids"] == token).long() * (1 if kind == "image" else 3)
