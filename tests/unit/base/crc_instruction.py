#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""usage: crc_instruction.py FAMILY OBJDUMP PROGRAM

CRC32c is computed by the processor's own instruction (SSE4.2's crc32, Armv8's crc32cx), not by a table:
it must stand in uw_crc32c_add of the program."""

import re
import subprocess
import sys

WANTED = {"x86_64": r"\bcrc32q?\b", "aarch64": r"\bcrc32cx\b"}


def main(family, objdump, program):
    if family not in WANTED:
        print(f"no instruction is known for {family}")
        return 77
    text = subprocess.run(
        [objdump, "-d", "--no-show-raw-insn", "--disassemble=uw_crc32c_add", program], capture_output=True, text=True, check=True
    ).stdout
    lines = [line for line in text.splitlines() if re.match(r"\s*[0-9a-f]+:\t", line)]
    hits = [line for line in lines if re.search(WANTED[family], line)]
    print(f"uw_crc32c_add: {len(lines)} instructions, {len(hits)} of them {WANTED[family]}")
    return 0 if hits else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
