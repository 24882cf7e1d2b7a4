"""What one loop kernel may hold: the contract between `schedule.fuse` and `loops.lower`.

A kernel (`Fused`) has a Domain (shape S, reduced dims D). Its rows are the points of the kept dims of S in
row-major order; I is the number of points of the reduced dims.

    map kernel   D is empty. Every output has as many elements as S and is computed point by point:
                 out[flat i] for each i. Members: pointwise, views, gathers, cat, pad, windows (pooling), constants.
    row kernel   D is not empty. Every reduction and scan of the kernel has a source of shape S (or, when D is the
                 trailing dims, a source whose leading dims have the same number of points as the rows) and folds
                 exactly D (dims of size 1 do not count). Every output has rows * I elements ("full") or one
                 element per row ("row"); element i of a full output belongs to row i // I when D is trailing, and
                 has exactly shape S when it is not.

A value that depends on a reduction or scan of its own kernel is *bound to its row*: fuse makes sure that every use
of it, through any chain of views and broadcasts, is at the row being computed. So lowering never checks:

    row value    (a reduction's result, and whatever is computed from row values only): one number per row;
                 reading it at any coordinates means reading the current row's number.
    full value   computed point by point along the row. In a row kernel with trailing D it may be read at another
                 position of the same row through permute, slice, flip or cat over the dims inside the row,
                 except when it depends on a scan: a scan's result is only read at the position being computed.

Values that depend on no reduction of the kernel may be read at any coordinates, through any view, gather or cat.
`kind` below tells the kind of each value; the level of a reduction is 1 + the largest level of what it folds.

Nodes that may raise (index out of range, integer division by zero) are only put where every element of their
result is visited: no slice, select, gather, cat or pad of the same kernel reads them.
Windows (pooling) and gathers read their first operand at several or at computed positions: it is an input of the
kernel, perhaps through views, or a constant.
"""
