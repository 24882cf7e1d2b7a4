"""The order of the passes, on one screen."""

from __future__ import annotations

import functools
from collections.abc import Collection

from monograph.ops.decompose import expand
from monograph.transform.bypass import bypass
from monograph.transform.conv_bn import fold_conv_bn
from monograph.transform.cse import cse
from monograph.transform.dce import dce
from monograph.transform.fold import fold
from monograph.transform.hoist import hoist
from monograph.transform.literals import literals
from monograph.transform.propagate import propagate
from monograph.transform.ranges import ranges
from monograph.transform.runner import Pass
from monograph.transform.select import select
from monograph.transform.simplify import simplify
from monograph.transform.sink import sink
from monograph.transform.unroll import unroll

__all__ = ["pipeline"]


def pipeline(*, written: Collection[int] = (), derive: bool = True) -> list[Pass]:
    """The passes of one compilation, in order.

    `written`: numbers of the inputs the program writes back to. `derive=False` (weights="live")
    leaves out what makes copies of weights.
    """
    clean = [Pass("simplify", simplify), Pass("cse", cse), Pass("dce", dce)]
    regions = [
        Pass("propagate", propagate), Pass("ranges", ranges), Pass("unroll", unroll), Pass("propagate", propagate),
        Pass("literals", literals),
        Pass("cse", cse), Pass("bypass", bypass), Pass("hoist", hoist), Pass("bypass", bypass), Pass("select", select),
    ]
    weights = [
        Pass("fold_conv_bn", functools.partial(fold_conv_bn, written=written)),
        Pass("fold", functools.partial(fold, written=written)),
    ] if derive else []
    return [Pass("dce", dce), *regions, *clean, *weights, Pass("dce", dce), Pass("expand", expand), *clean,
            *weights[1:],     # what `expand` made of weights alone, such as the scale of a batch norm
            Pass("sink", sink), Pass("dce", dce)]
