#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every field of lwIP's struct tcp_pcb that stack/io/lwip uses is listed in pcb/private.h, every listed
one is used, and nobody outside pcb/ includes lwIP's private header.

usage: private_fields.py SOURCE_ROOT"""

import pathlib
import re
import sys

ENTRY = re.compile(r"\bX\((\w+), [A-Z_]+\)")


def main(root):
    room = pathlib.Path(root) / "stack/io/lwip"
    private = room / "pcb/private.h"
    listed = set(ENTRY.findall(private.read_text()))
    used, wrong = set(), []
    for path in sorted(room.rglob("*.[ch]")):
        text = path.read_text()
        fields = set(re.findall(r"\bpcb->(\w+)", text))
        used |= fields
        wrong += [f"{path}: {f} is not listed in pcb/private.h" for f in sorted(fields - listed)]
        if "lwip/priv/tcp_priv.h" in text and path != private:
            wrong.append(f"{path}: lwip/priv/tcp_priv.h belongs to pcb/private.h alone")
    wrong += [f"{private}: nobody uses {f}" for f in sorted(listed - used)]
    if not used:
        wrong.append("found no use of any field: nothing was compared")
    print("\n".join(wrong) or f"{len(listed)} fields")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
