/*
 * The driver of one NIC: construction, bring-up, ends. See driver.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/bits.h"
#include "driver/internal.h"

#define DEFAULT_ARENA_BYTES (UINT64_C(64) << 30)
#define DEFAULT_PINNED_PAGES (UINT64_C(1) << 22)
#define FIRST_QPN 0x40u /* 0 and 1 are the management QPs; the rest leaves room */
#define FIRST_CQN 0x40u
#define FIRST_MPT 2u /* index 1 with variant 0 would be the invalid lkey */

static const uint32_t register_offset[8] = {
	RN_REG_ID,	   RN_REG_VERSION,    RN_REG_VENDOR,	 RN_REG_PART,
	RN_REG_HW_VERSION, RN_REG_CAP_QUEUES, RN_REG_CAP_MEMORY, RN_REG_CAP_WQE,
};

enum register_index { ID, VERSION, VENDOR, PART, HW_VERSION, CAP_QUEUES, CAP_MEMORY, CAP_WQE };

static const struct rn_counter_desc counter_rows[] = {
	RN_DRIVER_COUNTERS(struct rn_driver_counters, RN_COUNTER_ROW)};

struct rn_driver *rn_driver_new(const struct rn_driver_env *env)
{
	struct rn_driver *driver = rn_calloc(1, sizeof(*driver));

	driver->env = *env;
	driver->name = rn_strdup(env->name);
	if (!driver->env.arena_bytes)
		driver->env.arena_bytes = DEFAULT_ARENA_BYTES;
	if (!driver->env.max_pinned_pages)
		driver->env.max_pinned_pages = DEFAULT_PINNED_PAGES;
	driver->sim = env->sim;
	driver->rc = env->root_complex;
	driver->memory = rn_root_complex_memory(env->root_complex);
	driver->device = env->device;
	driver->port = env->port;
	driver->port.gids = driver->port.gids < 16 ? driver->port.gids : 16;
	driver->uar_pages = env->uar_pages ? env->uar_pages : 1;
	driver->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	rn_list_init(&driver->clients);
	rn_commands_init(driver);
	rn_root_complex_set_msi(driver->rc, rn_event_interrupt, driver);
	rn_root_complex_set_abort_hook(driver->rc, rn_fault_write, driver);
	if (env->stats)
		rn_stats_add_counters(env->stats, driver->name, counter_rows,
				      RN_ARRAY_LEN(counter_rows), &driver->counters);
	return driver;
}

static void free_objects(struct rn_driver *driver)
{
	for (uint32_t n = 0; driver->qp && n >> driver->icm.log_qps == 0; n++)
		if (driver->qp[n])
			rn_qp_free(driver->qp[n]);
	for (uint32_t n = 0; driver->cq && n >> driver->icm.log_cqs == 0; n++)
		if (driver->cq[n])
			rn_cq_free(driver->cq[n]);
	for (uint32_t n = 0; driver->mkey && n >> driver->icm.log_mpts == 0; n++)
		if (driver->mkey[n])
			rn_mkey_free(driver->mkey[n]);
	while (!rn_list_is_empty(&driver->clients))
		rn_client_free(rn_list_entry(driver->clients.next, struct rn_driver_client, link));
}

void rn_driver_free(struct rn_driver *driver)
{
	rn_root_complex_set_msi(driver->rc, NULL, NULL);
	rn_root_complex_set_abort_hook(driver->rc, NULL, NULL);
	free_objects(driver);
	rn_commands_fini(driver);
	rn_icm_fini(driver);
	rn_ids_fini(&driver->pds);
	rn_ids_fini(&driver->ahs);
	rn_ids_fini(&driver->mpts);
	rn_ids_fini(&driver->cqns);
	rn_ids_fini(&driver->qpns);
	rn_ids_fini(&driver->uars);
	rn_buddy_fini(&driver->mtts);
	free(driver->variant);
	free(driver->pd);
	free(driver->ah);
	free(driver->mkey);
	free(driver->cq);
	free(driver->qp);
	if (driver->epoll_fd >= 0)
		close(driver->epoll_fd);
	free(driver->name);
	free(driver);
}

/* --- bring-up --- */

static void start_done(struct rn_driver *driver, int error)
{
	driver->ready = !error;
	if (driver->started)
		driver->started(driver->started_arg, error);
}

static uint32_t byte_of(uint32_t value, unsigned idx)
{
	return value >> idx * 8 & 0xff;
}

static void cut_u32(uint32_t *limit, uint64_t to)
{
	if (*limit > to)
		*limit = (uint32_t)to;
}

/* The NIC's capabilities bound what the configuration promises. */
static bool read_capabilities(struct rn_driver *driver)
{
	const uint32_t queues = driver->registers[CAP_QUEUES];
	const uint32_t memory = driver->registers[CAP_MEMORY];
	const uint32_t wqe = driver->registers[CAP_WQE];
	struct rn_uapi_device *device = &driver->device;
	struct rn_icm *icm = &driver->icm;

	icm->log_qps = (uint8_t)byte_of(queues, 0);
	icm->log_cqs = (uint8_t)byte_of(queues, 1);
	icm->log_srqs = (uint8_t)byte_of(queues, 3);
	icm->log_mpts = (uint8_t)byte_of(memory, 0);
	icm->log_mtts = (uint8_t)byte_of(memory, 1);
	if (icm->log_qps > 24 || icm->log_cqs > 24 || icm->log_mpts > 24 || icm->log_mtts > 32 ||
	    icm->log_srqs > 24 || icm->log_qps < 7 || icm->log_cqs < 7 || icm->log_mpts < 7)
		return false;
	cut_u32(&device->num_comp_vectors, (UINT64_C(1) << rn_min_u64(byte_of(queues, 2), 16)) - 1);
	cut_u32(&device->num_comp_vectors, RN_ICM_EQS_MAX - 1);
	icm->eqs = (uint8_t)(1 + device->num_comp_vectors);
	cut_u32(&device->max_qp, (UINT64_C(1) << icm->log_qps) - FIRST_QPN);
	cut_u32(&device->max_cq, (UINT64_C(1) << icm->log_cqs) - FIRST_CQN);
	cut_u32(&device->max_mr, (UINT64_C(1) << icm->log_mpts) - FIRST_MPT);
	cut_u32(&device->max_sge, byte_of(wqe, 0));
	cut_u32(&device->max_sge_rd, byte_of(wqe, 0));
	cut_u32(&device->max_recv_sge, byte_of(wqe, 0));
	cut_u32(&device->max_sq_wqebbs, UINT64_C(1) << rn_min_u64(byte_of(wqe, 1), 31));
	cut_u32(&device->max_qp_wr, UINT64_C(1) << rn_min_u64(byte_of(wqe, 2), 31));
	cut_u32(&device->max_cqe, UINT64_C(1) << rn_min_u64(byte_of(wqe, 3), 31));
	return device->num_comp_vectors > 0;
}

static void make_tables(struct rn_driver *driver)
{
	const struct rn_uapi_device *device = &driver->device;
	const struct rn_icm *icm = &driver->icm;
	const uint32_t qpns = 1u << icm->log_qps, cqns = 1u << icm->log_cqs;
	const uint32_t mpts = 1u << icm->log_mpts;
	const uint32_t uars = (1u << rn_min_u64(byte_of(driver->registers[CAP_MEMORY], 2), 12)) /
			      driver->uar_pages;
	struct rn_rng rng;

	/* Hosts start at different numbers, so that one taken for another's shows. */
	rn_rng_init(&rng, driver->env.seed, driver->name);
	rn_ids_init(&driver->qpns, FIRST_QPN, qpns, device->max_qp,
		    FIRST_QPN + (uint32_t)rn_rng_below(&rng, (qpns - FIRST_QPN) / 8));
	rn_ids_init(&driver->cqns, FIRST_CQN, cqns, device->max_cq, FIRST_CQN);
	rn_ids_init(&driver->mpts, FIRST_MPT, mpts, mpts,
		    FIRST_MPT + (uint32_t)rn_rng_below(&rng, (mpts - FIRST_MPT) / 8));
	/* A PD of its own for each client, beside those it asks for. */
	rn_ids_init(&driver->pds, 1, device->max_pd + uars + 1, UINT32_MAX, 1);
	rn_ids_init(&driver->ahs, 1, device->max_ah + 2, device->max_ah, 1);
	rn_ids_init(&driver->uars, 0, uars, uars, 0);
	rn_buddy_init(&driver->mtts, icm->log_mtts);
	driver->variant = rn_calloc(mpts, 1);
	driver->pd = rn_calloc((size_t)driver->pds.end, sizeof(struct rn_pd *));
	driver->ah = rn_calloc((size_t)driver->ahs.end, sizeof(struct rn_ah_object *));
	driver->mkey = rn_calloc(mpts, sizeof(struct rn_mkey *));
	driver->cq = rn_calloc(cqns, sizeof(struct rn_cq_object *));
	driver->qp = rn_calloc(qpns, sizeof(struct rn_qp_object *));
}

static void create_next_eq(struct rn_driver *driver);

static void eq_created(void *arg, enum rn_cmd_status status, const void *out)
{
	struct rn_driver *driver = arg;

	(void)out;
	if (status != RN_CMD_OK) {
		start_done(driver, EIO);
		return;
	}
	/* From here on commands complete by EQ 0. */
	rn_command_set_polling(driver, false);
	driver->next_eq++;
	create_next_eq(driver);
}

static void create_next_eq(struct rn_driver *driver)
{
	const uint32_t eqn = driver->next_eq;
	const uint64_t offset = driver->icm.eq + ((uint64_t)eqn * RN_EQE_BYTES << RN_DRIVER_EQ_LOG);

	if (eqn == driver->icm.eqs) {
		start_done(driver, 0);
		return;
	}
	driver->eq[eqn].ring = (struct rn_hw_eqe *)(void *)(driver->icm.base + offset);
	driver->eq[eqn].live = true;

	const struct rn_hw_eqc eqc = {
		.state = 1,
		.log_eqes = RN_DRIVER_EQ_LOG,
		.vector = (uint16_t)eqn,
		.eqn = eqn,
		.base_pa = rn_icm_pa(&driver->icm, offset),
	};

	rn_command_submit(driver, RN_CMD_CREATE_EQ, eqn, &eqc, sizeof(eqc), 0, eq_created, driver);
}

static void initialised(void *arg, enum rn_cmd_status status, const void *out)
{
	struct rn_driver *driver = arg;

	(void)out;
	if (status == RN_CMD_OK)
		create_next_eq(driver);
	else
		start_done(driver, EIO);
}

static void init_hca(struct rn_driver *driver)
{
	const struct rn_icm *icm = &driver->icm;
	struct rn_hw_init_hca input = {
		.qpc_pa = rn_icm_pa(icm, icm->qpc),
		.cqc_pa = rn_icm_pa(icm, icm->cqc),
		.srqc_pa = rn_icm_pa(icm, icm->srqc),
		.mpt_pa = rn_icm_pa(icm, icm->mpt),
		.mtt_pa = rn_icm_pa(icm, icm->mtt),
		.log_qps = icm->log_qps,
		.log_cqs = icm->log_cqs,
		.log_srqs = icm->log_srqs,
		.log_mpts = icm->log_mpts,
		.log_mtts = icm->log_mtts,
	};

	memcpy(input.smac, driver->port.mac, sizeof(input.smac));
	memcpy(input.gid_table, driver->port.gid, (size_t)driver->port.gids * 16);
	rn_command_submit(driver, RN_CMD_INIT_HCA, 0, &input, sizeof(input), 0, initialised,
			  driver);
}

static void set_command_base(struct rn_driver *driver)
{
	const uint64_t pa = rn_icm_pa(&driver->icm, driver->icm.command);
	const uint32_t half[2] = {(uint32_t)pa, (uint32_t)(pa >> 32)};
	const uint64_t now_ps = rn_sim_now_ps(driver->sim);

	/* Nothing else writes yet: the queue has room. */
	RN_ASSERT(rn_root_complex_mmio_write(driver->rc, now_ps, RN_REG_CMD_BASE_LO, &half[0], 4));
	RN_ASSERT(rn_root_complex_mmio_write(driver->rc, now_ps, RN_REG_CMD_BASE_HI, &half[1], 4));
}

static void registers_known(struct rn_driver *driver)
{
	struct rn_uapi_device *device = &driver->device;
	const uint32_t *registers = driver->registers;

	if (registers[ID] != RN_HW_ID || registers[VERSION] != RN_HW_INTERFACE_VERSION ||
	    !read_capabilities(driver)) {
		start_done(driver, ENODEV);
		return;
	}
	if (!device->vendor_id)
		device->vendor_id = registers[VENDOR] & 0xffffff;
	if (!device->vendor_part_id)
		device->vendor_part_id = registers[PART];
	if (!device->hw_ver)
		device->hw_ver = registers[HW_VERSION];

	const int error = rn_icm_init(driver);

	if (error) {
		start_done(driver, error);
		return;
	}
	make_tables(driver);
	rn_command_set_polling(driver, true);
	set_command_base(driver);
	init_hca(driver);
}

static void read_next_register(struct rn_driver *driver);

static void register_read(void *arg, uint64_t value)
{
	struct rn_driver *driver = arg;

	driver->registers[driver->registers_read++] = (uint32_t)value;
	if (driver->registers_read == RN_ARRAY_LEN(driver->registers))
		registers_known(driver);
	else
		read_next_register(driver);
}

static void read_next_register(struct rn_driver *driver)
{
	/* One at a time: there is always room for one. */
	RN_ASSERT(rn_root_complex_mmio_read(driver->rc, rn_sim_now_ps(driver->sim),
					    register_offset[driver->registers_read], 4,
					    register_read, driver));
}

void rn_driver_start(struct rn_driver *driver, void (*done)(void *arg, int error), void *arg)
{
	driver->started = done;
	driver->started_arg = arg;
	if (driver->epoll_fd < 0)
		start_done(driver, EMFILE);
	else
		read_next_register(driver);
}

/* --- small answers --- */

bool rn_driver_is_ready(const struct rn_driver *driver)
{
	return driver->ready;
}

const struct rn_uapi_device *rn_driver_device(const struct rn_driver *driver)
{
	return &driver->device;
}

const struct rn_uapi_port *rn_driver_port(const struct rn_driver *driver)
{
	return &driver->port;
}

struct rn_host_memory *rn_driver_memory(const struct rn_driver *driver)
{
	return driver->memory;
}

int rn_driver_epoll_fd(const struct rn_driver *driver)
{
	return driver->epoll_fd;
}

void rn_driver_poll(struct rn_driver *driver)
{
	struct epoll_event event[16];
	const int count = epoll_wait(driver->epoll_fd, event, RN_ARRAY_LEN(event), 0);

	for (int n = 0; n < count; n++) {
		struct rn_outlet *outlet = event[n].data.ptr;

		outlet->flush(outlet);
	}
}

void rn_driver_get_usage(const struct rn_driver *driver, struct rn_driver_usage *usage)
{
	const struct rn_list *node;

	*usage = (struct rn_driver_usage){
		.clients = driver->client_count,
		.pds = driver->pds.used,
		.ahs = driver->ahs.used,
		.mrs = driver->mr_count,
		.cqs = driver->cqns.used,
		.qps = driver->qpns.used,
		.channels = driver->channel_count,
		.uar_groups = driver->uars.used,
		.mpts = driver->mpts.used,
		.mtts = driver->mtts.used,
		.pinned_pages = driver->pinned_pages,
	};
	for (node = driver->clients.next; node != &driver->clients; node = node->next)
		usage->frames += rn_list_entry(node, struct rn_driver_client, link)->frames.used;
}
