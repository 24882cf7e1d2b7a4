"""Control flow that only the run decides, as regions of the graph.

    operators   what converted code calls: Python where Python can decide, a region otherwise
    body        one branch or iteration, traced from a saved state
    objects     what a branch did to Python's lists, dicts and attributes
    merge       one state from the ends of two branches (`exports`, `sometimes`)
    carried     what a loop carries (`leaves`)
    cond, loop  `mono.cond` and `mono.while`
    iterate     what `for` and the builtins mean over traced things
"""
