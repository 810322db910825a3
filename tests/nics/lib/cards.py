# SPDX-License-Identifier: BSD-3-Clause
"""The emulated cards, and what each of them is known to do under DPDK's drivers."""

import re

SEEN = "seen"
# Why a card's column does not say `seen`, in the words of the table.
NEVER_GOOD = "asked for; DPDK's driver never says 'good'"
NOT_VERIFIED = "asked for; the emulated card does not verify"
NOT_ASKED = "not asked for: a peer on the same machine may send none"
NOTHING = "offered; without TSO no frame needs it"
ONE_QUEUE = "asked for; the emulated card uses one queue"
HANDED = "not offered; the stacks hand frames over"
REFUSED = "refused in one line"


class Card:
    """device: QEMU's; expected: {column: cell of the table}; args: more of uwarp-run's options."""

    def __init__(self, name, device, driver, expected, tap="vnet_hdr=off", multi_queue=False, tso=()):
        self.name, self.device, self.driver, self.tap = name, device, driver, tap
        self.multi_queue, self.tso = multi_queue, list(tso)
        self.expected = {**dict.fromkeys(COLUMNS, SEEN), **expected}


COLUMNS = ("vfio", "uio", "rx checksum", "tx checksum", "TSO", "several buffers", "jumbo", "RSS", "VLAN")
CARDS = [
    Card(
        "e1000e", "e1000e", "net_e1000_em",
        {"rx checksum": NEVER_GOOD, "TSO": REFUSED, "several buffers": NOTHING, "RSS": HANDED},
    ),
    Card("igb", "igb", "net_e1000_igb", {}),
    Card("vmxnet3", "vmxnet3", "net_vmxnet3", {"rx checksum": NOT_VERIFIED, "RSS": ONE_QUEUE}),
    Card(
        "virtio", "virtio-net-pci,disable-legacy=on,iommu_platform=on,ats=on,mq=on,vectors=10,rss=on,host_mtu=9000",
        "net_virtio", {"rx checksum": NOT_ASKED, "VLAN": REFUSED},
        tap="vnet_hdr=on,queues=4", multi_queue=True, tso=("--tso", "on"),
    ),
]  # fmt: skip


class Words:
    """What a verbose process said on stderr."""

    def __init__(self, text):
        self.text = text
        found = re.search(r"^uwarp: link \S+: (net_\S+), (.*)$", text, re.M)
        self.driver, rest = found.groups() if found else ("", "")
        used = re.search(r"; in use: ([^;]*)", rest)
        self.used = used.group(1).split(", ") if used else []
        self.links = [self.counters(m) for m in re.findall(r"uwarp: dpdk: (.*)$", text, re.M)]

    @staticmethod
    def counters(line):
        words = line.split()
        return {name: int(n) for name, n in zip(words[::2], words[1::2]) if n.isdigit()}

    def sum(self, name):
        return sum(link.get(name, 0) for link in self.links)

    def complaints(self):
        return [line for line in self.text.splitlines() if re.match(r"uwarp(-run)?: (?!link \S+: net_|dpdk:|counters:)", line)]


def checksum_rx(words):
    if "rx-checksum" not in words.used:
        return NOT_ASKED
    if words.sum("rx_sums"):
        return SEEN
    return NEVER_GOOD if words.driver == "net_e1000_em" else NOT_VERIFIED


def checksum_tx(words):
    return SEEN if "tx-checksum" in words.used and words.sum("tx_sums") else "not in use"


def several_buffers(words):
    if words.sum("tx_parts"):
        return SEEN
    return NOTHING if "segments" in words.used else "not offered"


def rss(words):
    filled = sum(1 for link in words.links if link.get("rx_frames"))
    if "rss" not in words.used:
        return HANDED if words.sum("handed") else "not offered, nothing handed over"
    return SEEN if filled > 1 else ONE_QUEUE


def jumbo(words):
    frames = words.sum("tx_frames")
    return SEEN if frames and words.sum("tx_bytes") / frames > 1514 else "frames stayed small"
