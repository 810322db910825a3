/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames to a pcap file (LINKTYPE_ETHERNET, microseconds), for tshark and the tests. */
#ifndef UWARP_IO_PCAP_H
#define UWARP_IO_PCAP_H

#include "io/io.h"

struct io_pcap;

/* NULL with errno when the file cannot be made. One that another process writes (a program that
 * forks) is left to it: ours is then called PATH.PID. */
struct io_pcap *io_pcap_open(const char *path);
/* One frame, all of its buffers; under the stack lock. */
void io_pcap_write(struct io_pcap *p, const struct io_frame *f, uint64_t now_us);
void io_pcap_close(struct io_pcap *p);

#endif
