"""Control flow on demand: source of a function that asked for a traced value -> the same function calling
`operators`.

    swap.enclosing(code)    which function a code object that asked belongs to
    compile.convert(code)   its converted code object, or Unconvertible
    swap.Swap().install     puts one in the place of the other while a capture runs

    source -> match, bound -> jumps -> control (expressions, comprehensions) -> compile
"""
