/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/pcap.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

struct io_pcap {
	FILE *f;
};

struct file_header {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, sigfigs, snaplen, linktype;
};
static_assert(sizeof(struct file_header) == 24, "pcap file header");

struct record_header {
	uint32_t sec, usec, caplen, len;
};
static_assert(sizeof(struct record_header) == 16, "pcap record header");

struct io_pcap *io_pcap_open(const char *path)
{
	const struct file_header h = {
		.magic = 0xa1b2c3d4, .major = 2, .minor = 4, .snaplen = 65535 + 14, .linktype = 1
	};
	struct io_pcap *p = malloc(sizeof(*p));

	if (!p)
		return NULL;
	p->f = fopen(path, "we");
	if (!p->f || fwrite(&h, sizeof(h), 1, p->f) != 1) {
		if (p->f)
			fclose(p->f);
		free(p);
		return NULL;
	}
	return p;
}

void io_pcap_write(struct io_pcap *p, const struct io_frame *f, uint64_t now_us)
{
	struct record_header h = { .sec = (uint32_t)(now_us / 1000000),
				   .usec = (uint32_t)(now_us % 1000000) };

	for (const struct io_frame *b = f; b; b = b->next)
		h.len += b->len;
	h.caplen = h.len;
	fwrite(&h, sizeof(h), 1, p->f);
	for (; f; f = f->next)
		fwrite(f->data, 1, f->len, p->f);
}

void io_pcap_close(struct io_pcap *p)
{
	fclose(p->f);
	free(p);
}
