/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes frames to a pcap file (LINKTYPE_ETHERNET, time stamps in microseconds). */
#ifndef UWARP_IO_PCAP_H
#define UWARP_IO_PCAP_H

#include "io/io.h"

struct io_pcap;

/* Create the file. NULL: see errno. If another process writes to the file at path, such as the
 * parent of a forked child, the name PATH.PID is used instead. */
struct io_pcap *io_pcap_open(const char *path);
/* Write one frame with all of its buffers. Called under the stack's lock. */
void io_pcap_write(struct io_pcap *p, const struct io_frame *f, uint64_t now_us);
void io_pcap_close(struct io_pcap *p);

#endif
