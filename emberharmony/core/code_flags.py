"""Names for the flags of `code.co_flags` that this package reads.

`inspect` has the same constants, but its import takes 3 ms, which every import of `ops` would pay.

Source: CPython, Include/cpython/code.h.
"""

VARIADIC = 0x04
"""The function takes `*args`."""

VARIADIC_KEYWORDS = 0x08
"""The function takes `**kwargs`."""

GENERATOR = 0x20
"""The function is a generator."""

COROUTINE = 0x80
"""The function is declared with `async def`."""

ASYNC_GENERATOR = 0x200
"""The function is declared with `async def` and yields."""
