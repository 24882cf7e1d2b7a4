"""What a node is to the scheduler, and what recomputing it costs.

    Role ::= VIEW | CONSTANT | POINTWISE | REDUCTION | SCAN | MAP | GATHER | WINDOW | FILL | TEMPLATE | LIBRARY
           | REGION

VIEW and CONSTANT cost nothing and belong to whoever reads them. MAP moves elements by a fixed rule (cat, pad, flip);
GATHER reads its first operand at computed positions, WINDOW (pooling) again and again, so that it must be in memory.
FILL writes in an order of its own: a kernel by itself.
LIBRARY has no kernel here. REGION has graphs inside, which are scheduled on their own.
"""

from __future__ import annotations

import enum

from monograph.ir import edit, sized
from monograph.ir.graph import Node, Value
from monograph.ir.op import Effect, Trait
from monograph.ir.types import TensorType
from monograph.ops import families, templates
from monograph.schedule import views
from monograph.schedule.views import shape_of

__all__ = ["Role", "is_heavy", "is_ordered", "may_raise", "moved_dims", "reduced_dims", "role"]


class Role(enum.Enum):
    VIEW = "view"
    CONSTANT = "constant"
    POINTWISE = "pointwise"
    REDUCTION = "reduction"
    SCAN = "scan"
    MAP = "map"
    GATHER = "gather"
    WINDOW = "window"
    FILL = "fill"
    TEMPLATE = "template"
    LIBRARY = "library"
    REGION = "region"


ROLES = {member.value: member for member in Role}

# Worth a store and a load rather than a second evaluation: divisions, roots and everything transcendental. What is
# not listed here is a few cheap instructions per element.
CHEAP = """
    add sub rsub mul neg abs sign relu clamp clamp_min clamp_max maximum minimum where masked_fill eq ne lt le gt ge
    logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_xor bitwise_not clone _to_copy
    convert_element_type square floor ceil trunc round isnan isinf isfinite threshold threshold_backward hardtanh
    leaky_relu tril triu lift_fresh_copy _conj_physical positive to fill copy addcmul lerp hardtanh_backward
"""
_CHEAP = frozenset(CHEAP.split())


def role(node: Node) -> Role:
    """How `node` is scheduled. What depends on a number known only at run time is called in torch."""
    name = node.op.name
    if node.regions:
        return Role.REGION
    if not all(_supported(value) for value in (*node.inputs, *node.results)):
        return Role.LIBRARY
    if any(map(edit.symbols_in, (*node.operands, *node.attributes.values()))):
        return Role.LIBRARY
    if templates.match(node) is not None:
        return Role.TEMPLATE
    if name in views.RULES and all(
        views.through(node, k, views.contiguous(shape_of(node.inputs[0]))) is not None
        for k in range(len(node.results))
    ):
        return Role.VIEW
    if families.is_ordered_scatter(node) and sized.is_sized([shape_of(value) for value in node.inputs]):
        return Role.FILL
    found = ROLES.get(families.family(node), Role.LIBRARY)
    return Role.LIBRARY if found is Role.VIEW and name in views.RULES else found


def _supported(value: Value) -> bool:
    type = value.type
    return isinstance(type, TensorType) and type.is_static and type.device == "cpu" and type.dtype in families.DTYPES


def is_heavy(node: Node) -> bool:
    """Dearer to compute again than to load."""
    return not node.op.has(Trait.VIEW) and node.op.name.split(".")[1] not in _CHEAP


def may_raise(node: Node) -> bool:
    """Does it stop the program on some values: an index out of range, an integer division by zero?"""
    if Effect.RAISES not in node.op.effects:
        return False
    if node.op.has(Trait.POINTWISE):
        return not node.results[0].tensor.dtype.is_floating_point
    return True


def is_ordered(node: Node) -> bool:
    """Must it keep its place among others of the kind: does it draw from a generator, or act on the world?

    So must what does nothing but raise: which exception the caller sees, and after which prints, is the program's.
    """
    if _draws(node) or node.effects - {Effect.RAISES}:
        return True
    return not node.results and not node.is_pure


def _draws(node: Node) -> bool:
    """Does it draw from a generator, in a region perhaps?"""
    return node.op.has(Trait.RANDOM) or any(_draws(inner) for region in node.regions for inner in region.nodes)


def reduced_dims(node: Node) -> tuple[int, ...]:
    """The dims of the first operand that a reduction or scan folds, ascending, not negative."""
    rank = node.inputs[0].tensor.rank
    dims = node.attributes.get("dim")
    if dims is None or dims == ():
        return tuple(range(rank))
    if isinstance(dims, int):
        dims = (dims,)
    return tuple(sorted({d % rank for d in dims})) if rank else ()


def moved_dims(node: Node) -> tuple[int, ...] | None:
    """The dims along which a MAP node moves elements; None where nobody says."""
    rank = node.results[0].tensor.rank
    attributes = node.attributes
    if isinstance(attributes.get("pad"), tuple):        # last dim first, two amounts each
        pad = attributes["pad"]
        return tuple(rank - 1 - k // 2 for k in range(0, len(pad), 2) if pad[k] or pad[k + 1])
    dims = attributes.get("dim", attributes.get("dims"))
    if isinstance(dims, int):
        return (dims % rank,)
    return tuple(d % rank for d in dims) if isinstance(dims, tuple) and dims else None
