"""Runs compiled programs, without the compiler.

    program     what a program is: slots, steps, derived weights, object code
    validate    every number the runner will use is bounded; serialise: programs as bytes
    elf, relocate, link, symbols     object code into memory
    abi, native, frame, execute      one call: tables, pointers, the native runner, library steps between
    probe       where torch keeps a tensor's facts, learnt at first use
    derive, recipe, optimisers       folded and packed weights that are never stale
    threads     OpenMP as torch uses it; forked children
"""
