"""Becomes a program under a seccomp filter: python3 -I filtered.py PROGRAM [ARGUMENT...].

The filter compares a call's first argument with 300 numbers, one by one, and allows the call either way: the cost
of a long list without its effect. By the call's number alone the kernel would know beforehand that it is allowed,
and skip the filter (since Linux 5.11). seccomp(2), linux/filter.h.
"""

import ctypes
import os
import struct
import sys

FIRST_ARGUMENT = 16
"""Its offset in struct seccomp_data."""
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN, ALLOW = 0x20, 0x15, 0x06, 0x7FFF0000


def instruction(code: int, if_true: int, if_false: int, value: int) -> bytes:
    """A struct sock_filter."""
    return struct.pack("=HBBI", code, if_true, if_false, value)


# A jump reaches 255 instructions; one that is never taken needs no farther target than the next.
never = b"".join(instruction(JUMP_IF_EQUAL, 0, 0, 100_000 + n) for n in range(300))
program = instruction(LOAD_WORD, 0, 0, FIRST_ARGUMENT) + never + instruction(RETURN, 0, 0, ALLOW)
held = ctypes.create_string_buffer(program, len(program))
header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(held))
libc = ctypes.CDLL(None, use_errno=True)
for arguments in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header, 0, 0)):
    if libc.prctl(*arguments) != 0:
        sys.exit(f"filtered.py: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[1], sys.argv[1:])
