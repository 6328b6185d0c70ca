"""Runs an agent on a kernel that refuses TCP MD5 keys, as one without CONFIG_TCP_MD5SIG does.

A seccomp filter answers setsockopt(TCP_MD5SIG) with ENOPROTOOPT; everything else is the kernel's.
``python -m tests.support.without_md5 [FLAG...]``
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import sys
from typing import Final

from cells.serve.host import TCP_MD5SIG

SETSOCKOPT: Final = {"x86_64": 54, "aarch64": 208}.get(platform.machine())
"""The number of the system call; None on a machine of which this module has none."""
IPPROTO_TCP: Final = 6
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, MODE_FILTER = 22, 38, 2
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.ENOPROTOOPT
NUMBER, LEVEL, OPTION = 0, 24, 32
"""Places in a struct seccomp_data: the system call, the low halves of its second and third argument."""


def refuse_md5() -> None:
    """Refuse TCP MD5 keys from now on, in this process and its children."""
    assert SETSOCKOPT is not None
    program = [
        (LOAD, 0, 0, NUMBER), (EQUAL, 0, 5, SETSOCKOPT),
        (LOAD, 0, 0, LEVEL), (EQUAL, 0, 3, IPPROTO_TCP),
        (LOAD, 0, 0, OPTION), (EQUAL, 0, 1, TCP_MD5SIG),
        (RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW),
    ]  # fmt: skip
    octets = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    code = ctypes.create_string_buffer(octets, len(octets))
    head = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, MODE_FILTER, head, 0, 0)):
        if libc.prctl(*call):
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    refuse_md5()
    from waggle_agent.__main__ import main

    sys.exit(main(sys.argv[1:]))
