/*
 * Modify and query of queue pairs: masks by the state table, ranges of every attribute, the address
 * handle made into addresses of the wire. Ranges and the masking of PSNs are those of Linux's
 * ib_core and mlx5.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "driver/address.h"
#include "driver/internal.h"
#include "driver/qp_state.h"

/* ib_core puts the route's hop limit in place of the verbs value. */
#define ROUTE_HOP_LIMIT 64
/* Access bits of the verbs API that a QP ignores: MW bind, zero based, on demand, huge pages, optional ones. */
#define ACCESS_KNOWN 0x3ff000ffu
#define ACCESS_GRANTED                                                                             \
	(RN_ACCESS_LOCAL_WRITE | RN_ACCESS_REMOTE_WRITE | RN_ACCESS_REMOTE_READ |                  \
	 RN_ACCESS_REMOTE_ATOMIC)

static uint8_t state_of(const struct rn_qp_object *qp)
{
	return qp->failed && qp->state != RN_QPS_RESET ? (uint8_t)RN_QPS_ERR : qp->state;
}

/* --- address handle --- */

static int resolve(const struct rn_driver *driver, const uint8_t gid[16], uint8_t mac[6])
{
	if (driver->env.resolve)
		return driver->env.resolve(driver->env.resolve_arg, gid, mac);
	return rn_address_resolve(driver->env.hosts, gid, mac);
}

static int check_av(const struct rn_driver *driver, const struct rn_uapi_qp_attr *attr)
{
	if (attr->ah_port != 1 || attr->sl > 15)
		return EINVAL;
	if (!attr->is_global)
		return driver->device.allow_no_grh ? 0 : EINVAL;
	if (attr->sgid_index >= driver->port.gids || attr->hop_limit > 255 ||
	    attr->traffic_class > 255 || attr->flow_label >> 20)
		return EINVAL;
	return 0;
}

/* RC without GRH, which real RoCE refuses: LID n stands for GID 0 of host n - 1 (0 is no LID). */
static int gid_of_lid(const struct rn_driver *driver, uint32_t lid, uint8_t gid[16])
{
	if (!lid || lid > driver->env.hosts)
		return ENETUNREACH;
	rn_address_gid(lid - 1, 0, gid);
	return 0;
}

static int set_av(const struct rn_driver *driver, struct rn_uapi_qp_attr *now,
		  const struct rn_uapi_qp_attr *attr, struct rn_hw_qpc *config)
{
	int error = check_av(driver, attr);
	uint8_t gid[16], mac[6];

	if (error)
		return error;
	memcpy(gid, attr->dgid, sizeof(gid));
	if (!attr->is_global)
		error = gid_of_lid(driver, attr->dlid, gid);

	const uint32_t sgid_index = attr->is_global ? attr->sgid_index : 0;

	if (!error && rn_address_is_ipv4(gid) != rn_address_is_ipv4(driver->port.gid[sgid_index]))
		error = EINVAL;
	if (!error)
		error = resolve(driver, gid, mac);
	if (error)
		return error;
	memcpy(config->dgid, gid, sizeof(gid));
	memcpy(config->dmac, mac, sizeof(mac));
	config->sgid_idx = (uint8_t)sgid_index;
	config->hop_limit = ROUTE_HOP_LIMIT;
	config->tclass = attr->is_global ? (uint8_t)attr->traffic_class : 0;
	config->flow_label = attr->is_global ? attr->flow_label : 0;
	config->sl = (uint8_t)attr->sl;
	now->is_global = attr->is_global ? 1 : 0;
	now->sgid_index = sgid_index;
	now->hop_limit = config->hop_limit;
	now->traffic_class = config->tclass;
	now->flow_label = config->flow_label;
	now->dlid = attr->dlid;
	now->sl = attr->sl;
	now->ah_port = attr->ah_port;
	memcpy(now->dgid, attr->dgid, sizeof(now->dgid));
	return 0;
}

int rn_qp_check_address(const struct rn_driver *driver, const struct rn_uapi_qp_attr *attr)
{
	struct rn_uapi_qp_attr now;
	struct rn_hw_qpc config;

	return set_av(driver, &now, attr, &config);
}

/* --- plain attributes --- */

/* Attributes that are a number up to a limit: mask bit, place in rn_uapi_qp_attr. */
struct range {
	uint32_t bit;
	size_t offset;
	uint32_t min, max;
};

#define RANGE(bit_, field_, min_, max_)                                                            \
	{                                                                                          \
		bit_, offsetof(struct rn_uapi_qp_attr, field_), min_, max_                         \
	}

static const struct range ranges[] = {
	RANGE(RN_QP_PORT, port_num, 1, 1),
	RANGE(RN_QP_PATH_MTU, path_mtu, 1, 5),
	RANGE(RN_QP_TIMEOUT, timeout, 0, 31),
	RANGE(RN_QP_RETRY_CNT, retry_cnt, 0, 7),
	RANGE(RN_QP_RNR_RETRY, rnr_retry, 0, 7),
	RANGE(RN_QP_MIN_RNR_TIMER, min_rnr_timer, 0, 31),
	RANGE(RN_QP_DEST_QPN, dest_qpn, 0, 0xffffff),
	RANGE(RN_QP_PATH_MIG_STATE, path_mig_state, 0, 0),
	RANGE(RN_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify, 0, 1),
	RANGE(RN_QP_PKEY_INDEX, pkey_index, 0, UINT32_MAX),
	RANGE(RN_QP_MAX_QP_RD_ATOMIC, max_rd_atomic, 0, 255),
	RANGE(RN_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, 0, 255),
	RANGE(RN_QP_ACCESS_FLAGS, access, 0, UINT32_MAX),
	RANGE(RN_QP_RQ_PSN, rq_psn, 0, UINT32_MAX),
	RANGE(RN_QP_SQ_PSN, sq_psn, 0, UINT32_MAX),
};

static bool is_in_range(const struct range *range, const struct rn_uapi_qp_attr *attr)
{
	uint32_t value;

	memcpy(&value, (const char *)attr + range->offset, sizeof(value));
	return value >= range->min && value <= range->max;
}

static int check_limits(const struct rn_driver *driver, const struct rn_uapi_qp_attr *attr,
			uint32_t mask)
{
	const struct rn_uapi_device *device = &driver->device;

	if (mask & RN_QP_PKEY_INDEX && attr->pkey_index >= driver->port.pkey_tbl_len)
		return EINVAL;
	if (mask & RN_QP_PATH_MTU && attr->path_mtu > driver->port.active_mtu)
		return EINVAL;
	if (mask & RN_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > device->max_qp_init_rd_atom)
		return EINVAL;
	if (mask & RN_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > device->max_qp_rd_atom)
		return EINVAL;
	if (mask & RN_QP_ACCESS_FLAGS && attr->access & ~ACCESS_KNOWN)
		return EINVAL;
	/* Automatic path migration is InfiniBand's; ib_core refuses it on RoCE. */
	return mask & RN_QP_ALT_PATH ? EINVAL : 0;
}

static int copy_attributes(const struct rn_driver *driver, struct rn_uapi_qp_attr *now,
			   const struct rn_uapi_qp_attr *attr, uint32_t mask)
{
	for (size_t n = 0; n < sizeof(ranges) / sizeof(ranges[0]); n++) {
		if (!(mask & ranges[n].bit))
			continue;
		if (!is_in_range(&ranges[n], attr))
			return EINVAL;
		memcpy((char *)now + ranges[n].offset, (const char *)attr + ranges[n].offset,
		       sizeof(uint32_t));
	}
	now->rq_psn &= 0xffffff;
	now->sq_psn &= 0xffffff;
	return check_limits(driver, attr, mask);
}

static void fill_config(const struct rn_driver *driver, const struct rn_uapi_qp_attr *attr,
			struct rn_hw_qpc *config)
{
	config->mtu_log2 = attr->path_mtu ? (uint8_t)(attr->path_mtu + 7) : 0;
	config->access = (uint8_t)(attr->access & ACCESS_GRANTED);
	config->dest_qpn = attr->dest_qpn;
	config->sq_psn = attr->sq_psn;
	config->rq_psn = attr->rq_psn;
	config->pkey = driver->port.pkey[attr->pkey_index % 8];
	config->timeout = (uint8_t)attr->timeout;
	config->retry_cnt = (uint8_t)attr->retry_cnt;
	config->rnr_retry = (uint8_t)attr->rnr_retry;
	config->min_rnr_timer = (uint8_t)attr->min_rnr_timer;
	config->max_rd_atomic = (uint8_t)attr->max_rd_atomic;
	config->max_dest_rd_atomic = (uint8_t)attr->max_dest_rd_atomic;
	config->sqd_notify = (uint8_t)attr->en_sqd_async_notify;
	config->udp_sport = rn_address_udp_sport(config->flow_label, config->qpn, config->dest_qpn);
}

/* --- modify --- */

static int prepare(struct rn_qp_object *qp, const struct rn_uapi_modify_qp *modify)
{
	const struct rn_driver *driver = qp->client->driver;
	const struct rn_uapi_qp_attr *attr = &modify->attr;
	const uint32_t mask = modify->attr_mask;
	const uint8_t state = state_of(qp);
	const uint32_t next = mask & RN_QP_STATE ? attr->qp_state : state;

	if (mask & RN_QP_CUR_STATE && attr->cur_qp_state != state)
		return EINVAL;
	if (next > RN_QPS_ERR || !rn_qp_transition_allows(state, (uint8_t)next, mask))
		return EINVAL;
	qp->new_state = (uint8_t)next;
	qp->new_attr = qp->attr;
	qp->new_config = qp->config;
	if (next == RN_QPS_RESET) {
		qp->new_attr = (struct rn_uapi_qp_attr){0};
		qp->new_config = qp->fresh;
		return 0;
	}
	/* Said anew each time, not remembered. */
	if (next == RN_QPS_SQD && state != RN_QPS_SQD)
		qp->new_attr.en_sqd_async_notify = 0;

	int error = copy_attributes(driver, &qp->new_attr, attr, mask);

	if (!error && mask & RN_QP_AV)
		error = set_av(driver, &qp->new_attr, attr, &qp->new_config);
	if (error)
		return error;
	fill_config(driver, &qp->new_attr, &qp->new_config);
	qp->new_config.state = qp->new_state;
	return 0;
}

/* The kernel's name of a process; programs are asked for it while they wait for an answer, so it is there. */
static void read_name(pid_t pid, char name[RN_DRIVER_PROGRAM_BYTES])
{
	char path[32];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	file = fopen(path, "re");
	if (!file || !fgets(name, RN_DRIVER_PROGRAM_BYTES, file))
		snprintf(name, RN_DRIVER_PROGRAM_BYTES, "process %d", (int)pid);
	if (file)
		fclose(file);
	name[strcspn(name, "\n")] = 0;
}

/* It works here, and the program meets the error on its first real network: somebody should say so. */
static void note_address(const struct rn_qp_object *qp, const struct rn_uapi_modify_qp *modify)
{
	struct rn_driver *driver = qp->client->driver;

	if (!(modify->attr_mask & RN_QP_AV) || qp->attr.is_global)
		return;
	driver->counters.connections_without_grh++;
	if (!driver->without_grh[0])
		read_name(qp->client->pid, driver->without_grh);
}

const char *rn_driver_program_without_grh(const struct rn_driver *driver)
{
	return driver->without_grh;
}

static void modified(void *arg, enum rn_cmd_status status, const void *out)
{
	struct rn_qp_object *qp = arg;

	(void)out;
	if (status == RN_CMD_OK) {
		qp->state = qp->new_state;
		if (qp->state == RN_QPS_RESET)
			qp->stamped_pi = 0;
		qp->attr = qp->new_attr;
		qp->config = qp->new_config;
		if (qp->state == RN_QPS_RESET)
			qp->failed = false;
		note_address(qp, (const void *)qp->client->request);
	}
	rn_client_answer(qp->client, rn_command_errno(status), qp->qpn);
}

void rn_qp_modify_request(struct rn_driver_client *client, const void *request)
{
	const struct rn_uapi_modify_qp *modify = request;
	struct rn_qp_object *qp = rn_qp_find(client, modify->req.handle);
	const int error = qp ? prepare(qp, modify) : EINVAL;

	if (error || (qp->state == RN_QPS_RESET && qp->new_state == RN_QPS_RESET)) {
		rn_client_answer(client, error, qp ? qp->qpn : 0);
		return;
	}

	struct rn_hw_modify_qp input = {
		.cur_state = qp->state,
		.new_state = qp->new_state,
		.attr_mask = modify->attr_mask,
	};

	_Static_assert(sizeof(input.config) == RN_QPC_CONFIG_BYTES, "config section");
	memcpy(input.config, &qp->new_config, sizeof(input.config));
	rn_command_submit(client->driver, RN_CMD_MODIFY_QP, qp->qpn, &input, sizeof(input), 0,
			  modified, qp);
}

/* --- query --- */

static void fill_answer(struct rn_qp_object *qp, const struct rn_hw_qpc *qpc,
			struct rn_uapi_qp_attr *attr)
{
	struct rn_hw_qpc_requester requester;
	struct rn_hw_qpc_responder responder;

	memcpy(&requester, qpc->requester, sizeof(requester));
	memcpy(&responder, qpc->responder, sizeof(responder));
	if (qp->state >= RN_QPS_RTR && (requester.error || responder.error))
		qp->failed = true;
	*attr = qp->attr;
	attr->qp_state = state_of(qp);
	attr->cur_qp_state = attr->qp_state;
	attr->sq_draining = qp->state == RN_QPS_SQD && !requester.drained;
	if (qp->state >= RN_QPS_RTS)
		attr->sq_psn = requester.next_psn & 0xffffff;
	if (qp->state >= RN_QPS_RTR)
		attr->rq_psn = responder.epsn & 0xffffff;
}

static void queried(void *arg, enum rn_cmd_status status, const void *out)
{
	struct rn_qp_object *qp = arg;
	struct rn_uapi_query_qp_rsp response = {0};

	if (status != RN_CMD_OK) {
		rn_client_answer(qp->client, rn_command_errno(status), qp->qpn);
		return;
	}
	fill_answer(qp, out, &response.attr);
	rn_client_answer_with(qp->client, &response, sizeof(response), qp->qpn, NULL, 0);
}

void rn_qp_query_request(struct rn_driver_client *client, const void *request)
{
	const struct rn_uapi_req *req = request;
	struct rn_qp_object *qp = rn_qp_find(client, req->handle);

	if (qp)
		rn_command_submit(client->driver, RN_CMD_QUERY_QP, qp->qpn, NULL, 0, RN_QPC_BYTES,
				  queried, qp);
	else
		rn_client_answer(client, EINVAL, 0);
}
