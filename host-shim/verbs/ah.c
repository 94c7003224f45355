/*
 * Address handles. The driver has checked the address and knows which protection domain each one holds.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/objects.h"

struct ah {
	struct ibv_ah ibv;
	struct ibv_ah_attr attr;
};

static int create_call(struct ah *ah)
{
	const struct ibv_ah_attr *attr = &ah->attr;
	struct rn_uapi_create_ah req = {
		.req.op = RN_UAPI_CREATE_AH,
		.pd = ah->ibv.pd->handle,
		.attr = {.is_global = attr->is_global,
			 .sgid_index = attr->grh.sgid_index,
			 .hop_limit = attr->grh.hop_limit,
			 .traffic_class = attr->grh.traffic_class,
			 .flow_label = attr->grh.flow_label,
			 .dlid = attr->dlid,
			 .sl = attr->sl,
			 .ah_port = attr->port_num},
	};
	struct rn_uapi_rsp rsp;
	int error;

	memcpy(req.attr.dgid, attr->grh.dgid.raw, sizeof(req.attr.dgid));
	error = rn_conn_call(rn_conn_of(ah->ibv.context), &req, sizeof(req), &rsp, sizeof(rsp));
	ah->ibv.handle = rsp.handle;
	return error;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ah *ah = calloc(1, sizeof(*ah));

	if (!ah)
		return NULL;
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	ah->attr = *attr;
	if (create_call(ah)) {
		free(ah);
		return NULL;
	}
	return &ah->ibv;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	const int error = rn_simple_call(rn_conn_of(ah->context), RN_UAPI_DESTROY_AH, ah->handle);

	if (!error)
		free(ah);
	return error;
}

static int find_gid(struct ibv_context *context, uint8_t port, const union ibv_gid *gid)
{
	const int count = (int)rn_conn_of(context)->port.gid_tbl_len;
	union ibv_gid entry;

	for (int i = 0; i < count; i++)
		if (ibv_query_gid(context, port, i, &entry) == 0 &&
		    memcmp(&entry, gid, sizeof(entry)) == 0)
			return i;
	return -1;
}

/* A RoCEv2 packet over IPv4 leaves its IPv4 header in the last 20 of the GRH's 40 bytes. */
static bool is_ipv4(const struct ibv_grh *grh)
{
	const uint8_t *ip = (const uint8_t *)grh + 20;
	uint32_t sum = 0;

	if (ip[0] != 0x45)
		return false;
	for (unsigned i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return ((sum & 0xffff) + (sum >> 16)) == 0xffff;
}

static void map_ipv4(const uint8_t *addr, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = gid->raw[11] = 0xff;
	memcpy(&gid->raw[12], addr, 4);
}

static int attr_from_grh(struct ibv_context *context, uint8_t port_num, const struct ibv_grh *grh,
			 struct ibv_ah_attr *attr)
{
	union ibv_gid dgid = grh->dgid;
	int index;

	attr->is_global = 1;
	attr->grh.hop_limit = 0xff;
	attr->grh.dgid = grh->sgid;
	if (is_ipv4(grh)) {
		const uint8_t *ip = (const uint8_t *)grh + 20;

		map_ipv4(ip + 12, &attr->grh.dgid);
		map_ipv4(ip + 16, &dgid);
		attr->grh.traffic_class = ip[1];
	} else {
		const uint32_t flow = ntohl(grh->version_tclass_flow);

		attr->grh.flow_label = flow & 0xfffff;
		attr->grh.traffic_class = (uint8_t)(flow >> 20);
	}
	index = find_gid(context, port_num, &dgid);
	if (index < 0)
		return -1;
	attr->grh.sgid_index = (uint8_t)index;
	return 0;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *ah_attr)
{
	memset(ah_attr, 0, sizeof(*ah_attr));
	ah_attr->dlid = wc->slid;
	ah_attr->sl = wc->sl;
	ah_attr->src_path_bits = wc->dlid_path_bits;
	ah_attr->port_num = port_num;
	if (wc->wc_flags & IBV_WC_GRH)
		return attr_from_grh(context, port_num, grh, ah_attr);
	return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

/* MAC addresses of the simulated network follow from the address (02:00:00:00:00:n for 10.0.0.n). */
int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	const uint8_t *raw = attr->grh.dgid.raw;

	(void)context;
	if (vid)
		*vid = 0xffff;
	if (raw[0] == 0xfe && raw[1] == 0x80) {
		const uint8_t mac[] = {raw[8] ^ 2, raw[9], raw[10], raw[13], raw[14], raw[15]};

		memcpy(eth_mac, mac, sizeof(mac));
		return 0;
	}
	if (raw[10] == 0xff && raw[11] == 0xff) {
		const uint8_t mac[] = {2, 0, 0, 0, raw[14], raw[15]};

		memcpy(eth_mac, mac, sizeof(mac));
		return 0;
	}
	return rn_return(EINVAL);
}
