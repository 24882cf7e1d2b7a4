"""From a graph to kernels: what is fused, how it is laid out, in which order, and where in memory."""

from monograph.schedule.plan import plan

__all__ = ["plan"]
