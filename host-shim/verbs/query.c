/*
 * Attributes of device and port, GIDs, P_Keys.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "verbs/objects.h"

/* The port attributes as libraries of old knew them. */
#define LEGACY_PORT_BYTES 48u

/* Bits of the NIC's clock. Simulated time ends long before it wraps. */
#define CLOCK_MASK (UINT64_MAX >> 1)

#define GID_SLOTS (sizeof(((struct rn_uapi_port *)0)->gid) / sizeof(union ibv_gid))
#define PKEY_SLOTS (sizeof(((struct rn_uapi_port *)0)->pkey) / sizeof(uint16_t))

enum rn_sysfs_gid_type { SYSFS_IB_ROCE_V1, SYSFS_ROCE_V2 };

RN_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index,
				 enum rn_sysfs_gid_type *type);

static void limits(const struct rn_uapi_device *in, struct ibv_device_attr *out)
{
	out->max_qp = (int)in->max_qp;
	out->max_qp_wr = (int)in->max_qp_wr;
	out->max_sge = (int)in->max_sge;
	out->max_sge_rd = (int)in->max_sge_rd;
	out->max_cq = (int)in->max_cq;
	out->max_cqe = (int)in->max_cqe;
	out->max_mr = (int)in->max_mr;
	out->max_pd = (int)in->max_pd;
	out->max_qp_rd_atom = (int)in->max_qp_rd_atom;
	out->max_res_rd_atom = (int)in->max_res_rd_atom;
	out->max_qp_init_rd_atom = (int)in->max_qp_init_rd_atom;
	out->max_mcast_grp = (int)in->max_mcast_grp;
	out->max_ah = (int)in->max_ah;
	out->max_srq = (int)in->max_srq;
	out->max_srq_wr = (int)in->max_srq_wr;
	out->max_srq_sge = (int)in->max_srq_sge;
}

static void device_attr(const struct rn_conn *conn, struct ibv_device_attr *out)
{
	const struct rn_uapi_device *in = &conn->device;

	memset(out, 0, sizeof(*out));
	snprintf(out->fw_ver, sizeof(out->fw_ver), "%s", in->fw_ver);
	out->node_guid = in->node_guid_be;
	out->sys_image_guid = in->sys_image_guid_be;
	out->max_mr_size = in->max_mr_size;
	out->page_size_cap = in->page_size_cap;
	out->vendor_id = in->vendor_id;
	out->vendor_part_id = in->vendor_part_id;
	out->hw_ver = in->hw_ver;
	out->device_cap_flags = in->device_cap_flags;
	out->atomic_cap = (enum ibv_atomic_cap)in->atomic_cap;
	out->max_pkeys = (uint16_t)conn->port.pkey_tbl_len;
	out->local_ca_ack_delay = (uint8_t)in->local_ca_ack_delay;
	out->phys_port_cnt = 1;
	limits(in, out);
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	const struct rn_conn *conn = rn_conn_of(context);

	if (rn_conn_is_dead(conn))
		return rn_return(EIO);
	device_attr(conn, attr);
	return 0;
}

int rn_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t attr_bytes)
{
	const struct rn_conn *conn = rn_conn_of(context);
	struct ibv_device_attr_ex full = {.phys_port_cnt_ex = 1};

	if ((input && input->comp_mask) || attr_bytes < sizeof(full.orig_attr))
		return rn_return(EINVAL);
	if (rn_conn_is_dead(conn))
		return rn_return(EIO);
	device_attr(conn, &full.orig_attr);
	full.hca_core_clock = conn->device.core_khz;
	full.completion_timestamp_mask = CLOCK_MASK;
	full.device_cap_flags_ex = full.orig_attr.device_cap_flags;
	if (attr_bytes > sizeof(full)) {
		memset((char *)attr + sizeof(full), 0, attr_bytes - sizeof(full));
		attr_bytes = sizeof(full);
	}
	memcpy(attr, &full, attr_bytes);
	return 0;
}

static void port_attr(const struct rn_uapi_port *in, struct ibv_port_attr *out)
{
	*out = (struct ibv_port_attr){
		.state = (enum ibv_port_state)in->state,
		.max_mtu = (enum ibv_mtu)in->max_mtu,
		.active_mtu = (enum ibv_mtu)in->active_mtu,
		.gid_tbl_len = (int)in->gid_tbl_len,
		.port_cap_flags = in->port_cap_flags,
		.max_msg_sz = in->max_msg_sz,
		.bad_pkey_cntr = in->bad_pkey_cntr,
		.qkey_viol_cntr = in->qkey_viol_cntr,
		.pkey_tbl_len = (uint16_t)in->pkey_tbl_len,
		.lid = (uint16_t)in->lid,
		.sm_lid = (uint16_t)in->sm_lid,
		.lmc = (uint8_t)in->lmc,
		.max_vl_num = 1,
		.active_width = (uint8_t)in->active_width,
		.active_speed = (uint8_t)in->active_speed,
		.phys_state = (uint8_t)in->phys_state,
		.link_layer = (uint8_t)in->link_layer,
		.flags = (uint8_t)in->flags,
	};
}

int rn_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
		  size_t attr_bytes)
{
	struct rn_conn *conn = rn_conn_of(context);
	struct ibv_port_attr full;
	int error;

	if (port != 1)
		return rn_return(EINVAL);
	error = rn_conn_query_port(conn);
	if (error)
		return error;
	port_attr(&conn->port, &full);
	memcpy(attr, &full, attr_bytes < sizeof(full) ? attr_bytes : sizeof(full));
	return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port_num,
		   struct _compat_ibv_port_attr *port_attr_out)
{
	return rn_query_port(context, port_num, (struct ibv_port_attr *)(void *)port_attr_out,
			     LEGACY_PORT_BYTES);
}

/* ---- GIDs ---- */

static const struct rn_uapi_port *gid_port(struct ibv_context *context, uint32_t port,
					   uint32_t index)
{
	const struct rn_uapi_port *p = &rn_conn_of(context)->port;

	return port == 1 && index < p->gid_tbl_len ? p : NULL;
}

static bool has_gid(const struct rn_uapi_port *port, uint32_t index)
{
	static const union ibv_gid zero;

	return index < GID_SLOTS && index < port->gids &&
	       memcmp(port->gid[index], &zero, sizeof(zero)) != 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	const struct rn_uapi_port *port = gid_port(context, port_num, (uint32_t)index);

	if (!port) {
		errno = EINVAL;
		return -1;
	}
	memset(gid, 0, sizeof(*gid));
	if (has_gid(port, (uint32_t)index))
		memcpy(gid, port->gid[index], sizeof(*gid));
	return 0;
}

static void fill_entry(const struct rn_uapi_port *port, uint32_t index, void *entry, size_t bytes)
{
	struct ibv_gid_entry full = {
		.gid_index = index, .port_num = 1, .gid_type = port->gid_type[index]};

	memcpy(&full.gid, port->gid[index], sizeof(full.gid));
	memcpy(entry, &full, bytes < sizeof(full) ? bytes : sizeof(full));
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	const struct rn_uapi_port *port = gid_port(context, port_num, gid_index);

	if (flags)
		return rn_return(EOPNOTSUPP);
	if (!port)
		return rn_return(EINVAL);
	if (!has_gid(port, gid_index))
		return rn_return(ENODATA);
	fill_entry(port, gid_index, entry, entry_size);
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	const struct rn_uapi_port *port = &rn_conn_of(context)->port;
	size_t n = 0;

	if (flags)
		return -rn_return(EOPNOTSUPP);
	for (uint32_t i = 0; i < port->gid_tbl_len; i++) {
		if (!has_gid(port, i))
			continue;
		if (n == max_entries)
			return -rn_return(EINVAL);
		fill_entry(port, i, (char *)entries + n++ * entry_size, entry_size);
	}
	return (ssize_t)n;
}

int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned index,
		       enum rn_sysfs_gid_type *type)
{
	const struct rn_uapi_port *port = gid_port(context, port_num, index);

	if (!port) {
		errno = EINVAL;
		return -1;
	}
	*type = has_gid(port, index) && port->gid_type[index] == IBV_GID_TYPE_ROCE_V2
			? SYSFS_ROCE_V2
			: SYSFS_IB_ROCE_V1;
	return 0;
}

/* ---- P_Keys ---- */

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	const struct rn_uapi_port *port = &rn_conn_of(context)->port;

	if (port_num != 1 || index < 0 || (uint32_t)index >= port->pkey_tbl_len) {
		errno = EINVAL;
		return -1;
	}
	*pkey = (size_t)index < PKEY_SLOTS ? __builtin_bswap16(port->pkey[index]) : 0;
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	const struct rn_uapi_port *port = &rn_conn_of(context)->port;
	__be16 found;

	for (int i = 0; i < (int)port->pkey_tbl_len; i++) {
		if (ibv_query_pkey(context, port_num, i, &found))
			return -1;
		if (found == pkey)
			return i;
	}
	errno = EINVAL;
	return -1;
}
