/* SPDX-License-Identifier: BSD-3-Clause */
/* Device and port attributes, before and after the engine has started alike. */
#include <endian.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "facts.h"
#include "provider.h"

static int as_int(uint64_t v)
{
	return v > INT_MAX ? INT_MAX : (int)v;
}

static void fill_device(const struct uw_device_attr *from, struct ibv_device_attr *to)
{
	struct uwarp_facts f;

	uwarp_facts_of(from, &f);
	memcpy(to->fw_ver, f.fw_ver, sizeof(f.fw_ver));
	to->node_guid = to->sys_image_guid = htobe64(f.node_guid);
	to->vendor_id = UWARP_VENDOR_ID;
	to->hw_ver = UWARP_HW_VER;
	to->max_mr_size = UINT64_MAX;
	to->page_size_cap = (uint64_t)sysconf(_SC_PAGESIZE);
	to->max_qp = as_int(from->max_qp);
	to->max_qp_wr = as_int(from->max_qp_wr);
	to->device_cap_flags = IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
			       IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
			       IBV_DEVICE_SRQ_RESIZE;
	to->max_sge = to->max_sge_rd = to->max_srq_sge = as_int(from->max_sge);
	to->max_cq = as_int(from->max_cq);
	to->max_cqe = as_int(from->max_cqe);
	to->max_mr = as_int(from->max_mr);
	to->max_mw = as_int(from->max_mw);
	to->max_pd = as_int(from->max_pd);
	to->max_qp_rd_atom = to->max_qp_init_rd_atom = as_int(from->max_rd_atom);
	to->max_res_rd_atom = as_int((uint64_t)from->max_rd_atom * from->max_qp);
	/* The CPU's own instructions. InfiniBand's devices say HCA even so, and programs look for
	 * that (UCX); what mixes with the CPU's is in pci_atomic_caps then. */
	to->atomic_cap = from->roce ? IBV_ATOMIC_HCA : IBV_ATOMIC_GLOB;
	to->max_srq = as_int(from->max_srq);
	to->max_srq_wr = as_int(from->max_srq_wr);
	to->phys_port_cnt = 1;
	/* a list, searched for each packet to a group */
	to->max_mcast_grp = UW_GROUPS_MAX;
	to->max_mcast_qp_attach = UW_GROUP_QPS_MAX;
	to->max_total_mcast_qp_attach = UW_GROUPS_MAX * UW_GROUP_QPS_MAX;
	to->max_ah = INT_MAX; /* nothing is kept for one */
	to->max_pkeys = (uint16_t)f.n_pkeys;
}

/* Structures of another age end earlier. */
#define HAS(field) (size >= offsetof(struct ibv_device_attr_ex, field) + sizeof(attr->field))

/* Memory is never pinned: every registration is on demand, but must stay mapped. */
static void fill_extended(struct ibv_device_attr_ex *attr, size_t size)
{
	if (HAS(odp_caps)) {
		attr->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
		attr->odp_caps.per_transport_caps.rc_odp_caps =
			IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
			IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV |
			PABI_ODP_FLUSH | PABI_ODP_ATOMIC_WRITE;
		attr->odp_caps.per_transport_caps.uc_odp_caps =
			IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE;
		attr->odp_caps.per_transport_caps.ud_odp_caps =
			IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;
	}
	if (HAS(device_cap_flags_ex))
		attr->device_cap_flags_ex = attr->orig_attr.device_cap_flags |
					    PABI_CAP_FLUSH_GLOBAL | PABI_CAP_FLUSH_PERSISTENT |
					    PABI_CAP_ATOMIC_WRITE;
	if (HAS(max_dm_size))
		attr->max_dm_size = UWARP_DM_SIZE;
	if (HAS(hca_core_clock)) {
		attr->completion_timestamp_mask = UINT64_MAX;
		attr->hca_core_clock = 1000000; /* kHz: nanoseconds */
	}
	if (HAS(cq_mod_caps)) {
		attr->cq_mod_caps.max_cq_count = UINT16_MAX;
		attr->cq_mod_caps.max_cq_period = UINT16_MAX;
	}
	if (HAS(pci_atomic_caps))
		attr->pci_atomic_caps.fetch_add = attr->pci_atomic_caps.compare_swap =
			IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP;
	if (HAS(phys_port_cnt_ex))
		attr->phys_port_cnt_ex = 1;
}

int uwarp_query_device(struct ibv_context *ibctx, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct uw_device_attr dev;
	struct uwarp_stack stack;
	int rc = uwarp_stack_get(&stack);

	(void)ibctx;
	if (rc)
		return -rc;
	if (input && input->comp_mask)
		return EINVAL;
	if (attr_size < sizeof(attr->orig_attr))
		return EINVAL;
	stack.api->engine_query(stack.engine, &dev);
	/* Plain ibv_query_device() hands in the first member only. */
	memset(attr, 0, attr_size);
	fill_device(&dev, &attr->orig_attr);
	fill_extended(attr, attr_size);
	return 0;
}

/* What completions are stamped with. */
int uwarp_query_rt_values(struct ibv_context *ibctx, struct ibv_values_ex *values)
{
	(void)ibctx;
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK)
		clock_gettime(CLOCK_MONOTONIC, &values->raw_clock);
	values->comp_mask &= IBV_VALUES_MASK_RAW_CLOCK;
	return 0;
}

/* 0 or an errno: EINVAL if the device has no such port. A LID is told here, and behind a uwarpd the
 * program is its client from here on, as when it asks for a GID. */
static int facts_of_port(uint32_t port, struct uwarp_facts *f)
{
	struct uw_device_attr dev;
	struct uwarp_stack stack;
	int rc = uwarp_stack_get(&stack);

	if (rc)
		return -rc;
	if (port != 1)
		return EINVAL;
	uwarp_query_for_lids(&stack, &dev);
	uwarp_facts_of(&dev, f);
	return 0;
}

/* Sets members one by one: libibverbs has zeroed the structure and knows its size, which has grown
 * since. */
int uwarp_query_port(struct ibv_context *ibctx, uint8_t port, struct ibv_port_attr *attr)
{
	struct uwarp_facts f;
	int rc = facts_of_port(port, &f);

	(void)ibctx;
	if (rc)
		return rc;
	attr->state = (enum ibv_port_state)f.state;
	attr->phys_state = f.phys_state;
	attr->link_layer = f.link_layer;
	attr->max_mtu = IBV_MTU_4096;
	attr->active_mtu = (enum ibv_mtu)f.active_mtu;
	attr->gid_tbl_len = (int)f.n_gids;
	attr->pkey_tbl_len = (uint16_t)f.n_pkeys;
	attr->port_cap_flags = UWARP_PORT_CAPS;
	attr->flags = f.grh_required ? IBV_QPF_GRH_REQUIRED : 0;
	attr->max_msg_sz = UW_MSG_MAX;
	attr->lid = f.lid;
	attr->active_width = f.width;
	attr->active_speed = f.speed;
	return 0;
}

/* What active_width and active_speed say, as one number. */
int uwarp_query_port_speed(struct ibv_context *ibctx, uint32_t port, uint64_t *speed)
{
	struct uwarp_facts f;
	struct uwarp_rate r;
	int rc = facts_of_port(port, &f);

	(void)ibctx;
	if (rc)
		return rc;
	r = uwarp_rate_of(&f);
	*speed = (uint64_t)r.lanes * r.tenths;
	return 0;
}
