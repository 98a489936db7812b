"""The fuzzer: it calls every op with unusual arguments, in a process of its own, which a call may kill.

It reports signals, hangs, untyped errors, changed inputs and reads outside of a tensor.
"""
