/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device memory. A NIC has some octets of memory of its own that peers reach without crossing the
 * host's bus. Here it is host memory, with the rules of such NICs, so that programs that use it
 * can be tested: it has no address, accesses are aligned to 4 octets, and there is not much of it.
 */
#include <stdlib.h>
#include <string.h>

#include "provider.h"

enum { DM_ALIGN = 4, MAX_LOG_ALIGN = 12 };

struct uwarp_dm {
	struct ibv_dm dm;
	uint8_t *memory;
	size_t length;
	_Atomic unsigned users; /* memory regions */
};

/* Octets of device memory that this process has allocated. */
static _Atomic size_t in_use;

static struct uwarp_dm *to_uwarp_dm(struct ibv_dm *dm)
{
	return uwarp_container(dm, struct uwarp_dm, dm);
}

static bool is_inside(const struct uwarp_dm *dm, uint64_t offset, size_t length)
{
	return offset <= dm->length && length <= dm->length - offset;
}

static bool may_access(const struct uwarp_dm *dm, uint64_t offset, size_t length)
{
	return is_inside(dm, offset, length) && !(offset % DM_ALIGN) && !(length % DM_ALIGN);
}

static int fail(int err)
{
	errno = err;
	return err;
}

static int copy_to(struct ibv_dm *ibdm, uint64_t offset, const void *from, size_t length)
{
	struct uwarp_dm *dm = to_uwarp_dm(ibdm);

	if (!may_access(dm, offset, length))
		return fail(EFAULT);
	memcpy(dm->memory + offset, from, length);
	return 0;
}

static int copy_from(void *to, struct ibv_dm *ibdm, uint64_t offset, size_t length)
{
	struct uwarp_dm *dm = to_uwarp_dm(ibdm);

	if (!may_access(dm, offset, length))
		return fail(EFAULT);
	memcpy(to, dm->memory + offset, length);
	return 0;
}

/* Count the octets, if that many are left. */
static bool take(size_t length)
{
	size_t used = atomic_load(&in_use);

	do {
		if (length > UWARP_DM_SIZE - used)
			return false;
	} while (!atomic_compare_exchange_weak(&in_use, &used, used + length));
	return true;
}

struct ibv_dm *uwarp_alloc_dm(struct ibv_context *ibctx, struct ibv_alloc_dm_attr *attr)
{
	struct uwarp_dm *dm;
	void *memory;

	if (attr->comp_mask || attr->log_align_req > MAX_LOG_ALIGN)
		return uwarp_fail(-EINVAL);
	if (!take(attr->length))
		return uwarp_fail(-ENOMEM);
	dm = calloc(1, sizeof(*dm));
	if (!dm || posix_memalign(&memory, 1 << MAX_LOG_ALIGN, attr->length + 1)) {
		free(dm);
		atomic_fetch_sub(&in_use, attr->length);
		return uwarp_fail(-ENOMEM);
	}
	memset(memory, 0, attr->length);
	dm->memory = memory;
	dm->length = attr->length;
	dm->dm.context = ibctx;
	dm->dm.memcpy_to_dm = copy_to;
	dm->dm.memcpy_from_dm = copy_from;
	return &dm->dm;
}

int uwarp_free_dm(struct ibv_dm *ibdm)
{
	struct uwarp_dm *dm = to_uwarp_dm(ibdm);

	if (atomic_load(&dm->users))
		return EBUSY;
	atomic_fetch_sub(&in_use, dm->length);
	free(dm->memory);
	free(dm);
	return 0;
}

/* Its addresses begin at 0, as ibv_reg_dm_mr(3) demands. */
struct ibv_mr *uwarp_reg_dm_mr(struct ibv_pd *ibpd, struct ibv_dm *ibdm, uint64_t offset,
			       size_t length, unsigned access)
{
	enum { TYPE_NULL = 1 }; /* libibverbs: nothing to do for fork */
	struct uwarp_dm *dm = to_uwarp_dm(ibdm);
	struct ibv_mr *mr;

	if (!(access & IBV_ACCESS_ZERO_BASED) || !is_inside(dm, offset, length))
		return uwarp_fail(-EINVAL);
	mr = uwarp_reg_mr(ibpd, dm->memory + offset, length, 0, (int)access);
	if (!mr)
		return NULL;
	atomic_fetch_add(&dm->users, 1);
	uwarp_container(mr, struct uwarp_mr, vmr.ibv_mr)->of_users = &dm->users;
	uwarp_container(mr, struct verbs_mr, ibv_mr)->mr_type = TYPE_NULL;
	mr->context = ibpd->context;
	mr->pd = ibpd;
	mr->length = length;
	return mr;
}
