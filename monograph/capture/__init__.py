"""Python to graph."""

from monograph.capture.captured import Binding, Captured, JointInfo
from monograph.capture.driver import trace

__all__ = ["Binding", "Captured", "JointInfo", "trace"]
