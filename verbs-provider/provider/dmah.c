/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DMA handles (ibv_alloc_dmah(3)): a hint to a card, in which CPU's cache the octets of a memory
 * region are best placed. Here a CPU places them itself, so the hint changes nothing. The handles
 * are there, and checked as the kernel checks them, so that programs that use them can be tested.
 */
#include <sched.h>
#include <stdlib.h>

#include "provider.h"

enum { PH_MAX = 3, MEM_TYPE_MAX = 1 };

struct uwarp_dmah {
	struct pabi_dmah dmah;
	_Atomic unsigned users; /* memory regions */
};

static struct uwarp_dmah *to_uwarp_dmah(struct ibv_dmah *dmah)
{
	return (struct uwarp_dmah *)dmah; /* struct ibv_dmah begins it, see pabi.h */
}

static bool may_run_on(uint32_t cpu)
{
	cpu_set_t set;

	return cpu < CPU_SETSIZE && !sched_getaffinity(0, sizeof(set), &set) &&
	       CPU_ISSET(cpu, &set);
}

static int check(const struct pabi_dmah_attr *a)
{
	const uint32_t known = PABI_DMAH_CPU_ID | PABI_DMAH_PH | PABI_DMAH_MEM_TYPE;

	if (a->comp_mask & ~known)
		return -EINVAL;
	if ((a->comp_mask & PABI_DMAH_PH) && a->ph > PH_MAX)
		return -EINVAL;
	if ((a->comp_mask & PABI_DMAH_MEM_TYPE) && a->tph_mem_type > MEM_TYPE_MAX)
		return -EINVAL;
	if ((a->comp_mask & PABI_DMAH_CPU_ID) && !may_run_on(a->cpu_id))
		return -EPERM;
	return 0;
}

struct ibv_dmah *uwarp_alloc_dmah(struct ibv_context *ibctx, struct pabi_dmah_attr *attr)
{
	struct uwarp_dmah *h;
	int rc = check(attr);

	if (rc)
		return uwarp_fail(rc);
	h = calloc(1, sizeof(*h));
	if (!h)
		return uwarp_fail(-ENOMEM);
	h->dmah.context = ibctx;
	return (struct ibv_dmah *)h;
}

int uwarp_dealloc_dmah(struct ibv_dmah *dmah)
{
	struct uwarp_dmah *h = to_uwarp_dmah(dmah);

	if (atomic_load(&h->users))
		return EBUSY;
	free(h);
	return 0;
}

/* A region is at an address (ADDR), or of a dma-buf (FD), of which there are none here. */
static int check_region(const struct pabi_mr_attr *a)
{
	const uint64_t known = PABI_MR_IOVA | PABI_MR_ADDR | PABI_MR_DMAH;
	const uint64_t file = PABI_MR_FD | PABI_MR_FD_OFFSET;

	if ((a->comp_mask & file) && (a->comp_mask & PABI_MR_ADDR))
		return -EINVAL;
	if (a->comp_mask & ~known)
		return -EOPNOTSUPP;
	if (!(a->comp_mask & PABI_MR_ADDR))
		return -EINVAL;
	/* as the kernel: such memory has no place that is known beforehand */
	if ((a->comp_mask & PABI_MR_DMAH) && (a->access & IBV_ACCESS_ON_DEMAND))
		return -EOPNOTSUPP;
	return 0;
}

struct ibv_mr *uwarp_reg_mr_ex(struct ibv_pd *ibpd, struct pabi_mr_attr *a)
{
	int rc = check_region(a);
	struct ibv_mr *mr;

	if (rc)
		return uwarp_fail(rc);
	mr = uwarp_reg_mr(ibpd, a->addr, a->length,
			  a->comp_mask & PABI_MR_IOVA ? a->iova : (uintptr_t)a->addr, a->access);
	if (mr && (a->comp_mask & PABI_MR_DMAH)) {
		struct uwarp_dmah *h = to_uwarp_dmah(a->dmah);

		atomic_fetch_add(&h->users, 1);
		uwarp_container(mr, struct uwarp_mr, vmr.ibv_mr)->of_users = &h->users;
	}
	return mr;
}
