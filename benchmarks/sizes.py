"""Programs made while batch and sequence length vary: two, and one more for a batch of one.

    python -m benchmarks.sizes [--only bert,llama] [--backend reference]

Every result is compared with eager's. Named is why a call needed a program, where there are more.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import torch

import monograph
from benchmarks.zoo.check import visible
from monograph.api import dispatcher_of
from tests.architectures import ARCHITECTURES
from tests.compare import assert_same

KINDS = ("bert", "roberta", "distilbert", "albert", "deberta", "gpt2", "opt", "bloom", "llama", "mistral", "qwen2",
         "gemma", "t5", "bart", "vit", "swin", "wav2vec2", "whisper", "clip")
CALLS = ((2, 7), (3, 12), (5, 33), (1, 7), (1, 33), (1, 12), (2, 33), (5, 7), (3, 33))
SAMPLES = 200       # of sound, for each token of text


def inputs(name: str, batch: int, length: int) -> dict[str, Any]:
    """Those of the architecture, for another batch and length; images and spectra keep their size."""
    made: dict[str, Any] = {}
    for key, value in ARCHITECTURES[name][1]().items():
        if key in ("input_ids", "decoder_input_ids"):
            made[key] = torch.randint(3, 99, (batch, length - 2 * (key != "input_ids")))
        elif key == "attention_mask":
            made[key] = torch.ones(batch, length, dtype=torch.long)
            made[key][-1, length - 2:] = 0
        elif key == "input_values":
            made[key] = torch.randn(batch, SAMPLES * length)
        else:
            made[key] = torch.randn(batch, *value.shape[1:])
    return made


def programs(name: str, backend: str) -> tuple[list[int], list[str]]:
    """How many there are after each call, and why."""
    torch.manual_seed(0)
    model = ARCHITECTURES[name][0]().eval()
    compiled = monograph.compile(model, backend=backend)
    dispatcher = dispatcher_of(compiled)
    assert dispatcher is not None
    counts = []
    for batch, length in CALLS:
        given = inputs(name, batch, length)
        with torch.no_grad():
            assert_same(visible(compiled(**given)), visible(model(**given)), rtol=1e-3, atol=1e-4)
        counts.append(len(dispatcher.entries))
    return counts, [str(recompile) for recompile in dispatcher.recompiles]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(KINDS), help="names with commas between them (%(default)s)")
    parser.add_argument("--backend", default="reference", choices=["reference", "llvm"],
                        help="run the graph op by op, or as native code (%(default)s)")
    options = parser.parse_args()
    if unknown := set(options.only.split(",")) - set(KINDS):
        parser.error(f"--only: {', '.join(sorted(unknown))} not among {', '.join(KINDS)}")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print(f"{'model':<14}programs after calls of (batch, length) {', '.join(map(str, CALLS))}")
    for name in options.only.split(","):
        counts, reasons = programs(name, options.backend)
        print(f"{name:<14}{counts}", flush=True)
        if counts[-1] > 3:
            print(*(f"    {reason[:200]}" for reason in reasons), sep="\n")


if __name__ == "__main__":
    main()
