"""Switches callgrind's counting on and off from inside of the program that it runs (x86-64).

Valgrind reads requests of its client from a sequence of instructions that do nothing elsewhere. So a program can
import PyTorch at the speed of valgrind alone, which takes a third of the time of callgrind, and count only afterwards.
Source: valgrind.h and callgrind.h of valgrind 3.19, the part for amd64.
"""

import ctypes
import mmap
import platform

RUNNING_ON_VALGRIND = 0x1001
_TOOL = ord("C") << 24 | ord("T") << 16
DUMP, ZERO, START = _TOOL, _TOOL + 1, _TOOL + 4
"""The requests: write the counts to a file and begin again at zero; begin again at zero; count from here on."""

_CODE = bytes.fromhex(
    "4889f8"  # mov rax, rdi: the address of the request
    "31d2"  # xor edx, edx: the answer outside of valgrind
    "48c1c703 48c1c70d 48c1c73d 48c1c733 4887db"  # rol rdi by 3, 13, 61 and 51; xchg rbx, rbx: what valgrind looks for
    "4889d0 c3"  # mov rax, rdx; ret
)


class Client:
    """Sends requests to the valgrind in which this process runs.

    Raises:
        RuntimeError: if this is another processor than x86-64, or no valgrind runs the process.
    """

    def __init__(self) -> None:
        if platform.machine() not in ("x86_64", "AMD64"):
            raise RuntimeError(f"instructions can be counted on x86-64 alone, and this is {platform.machine()}")
        self._memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self._memory.write(_CODE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._call = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(address)
        if not self.request(RUNNING_ON_VALGRIND):
            raise RuntimeError("this process does not run in valgrind")

    def request(self, number: int) -> int:
        """Sends a request without arguments and returns the answer."""
        return int(self._call(ctypes.byref((ctypes.c_uint64 * 6)(number))))
