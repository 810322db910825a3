# SPDX-License-Identifier: BSD-3-Clause
"""CRC32c as MPA uses it (RFC 5044 §4.4)."""


def _table():
    rows = []
    for n in range(256):
        for _ in range(8):
            n = (n >> 1) ^ (0x82F63B78 if n & 1 else 0)
        rows.append(n)
    return tuple(rows)


TABLE = _table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for octet in data:
        crc = TABLE[(crc ^ octet) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def field(data):
    """The four octets that stand behind `data` on the wire: least significant first."""
    return crc32c(data).to_bytes(4, "little")
