# SPDX-License-Identifier: BSD-3-Clause
"""The environment variables that count for uwarp (uwarp-run(1) says what each is), and those that nearly are."""

import os

PREFIX = "UWARP_"
NAMES = frozenset(
    "ADDR_FD BUILD_DIR CC CONNECT_MS CONNS_PER_HOST CRC DAD_MS DIR ECN GATEWAY IDENTITY IMPAIR IP IP_AUTO IRD KEEPALIVE_MS "
    "LIB LINK LINK_RATE MARKERS MPA_REV MTU NAME ORD P2P PCAP RC_WAIT_MS RECORD RNR_MS ROUTES SILENT_PER_HOST SPEAK_FIRST_MS "
    "STACKS STAT THREADS TIMESTAMPS TRANSPORT TSO VERBOSE VLAN".split()
)
KNOWN = frozenset(PREFIX + n for n in NAMES)
ALIKE = 0.75  # as difflib counts it


def meant(name):
    """The variable that this one was probably to be, or None: programs may have UWARP_ variables of their own."""
    import difflib  # only after a mistake

    word = name[len(PREFIX) :].upper()
    alike = difflib.get_close_matches(word, sorted(NAMES), 1, ALIKE) or [n for n in sorted(NAMES) if word in n.split("_")]
    return PREFIX + alike[0] if alike else None


def misspelt():
    """[(name, the one that is meant)] of what is set."""
    unknown = [n for n in os.environ if n.upper().startswith(PREFIX) and n not in KNOWN]
    return [(n, m) for n, m in ((n, meant(n)) for n in sorted(unknown)) if m]
