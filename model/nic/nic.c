/*
 * Assembly of one RNIC. No behaviour: fifos are made here, blocks connect themselves to them.
 */
#include "nic/nic.h"

#include <stdlib.h>

#include "base/bits.h"
#include "base/mem.h"
#include "hw/gen/rnic_hw.h"
#include "nic/msg/identity.h"
#include "nic/nic_fifos.h"
#include "nic/unit.h"
#include "pcie/link.h"
#include "sim/stats.h"

#define RN_PARAM_OWNER rn_nic_core_params
RN_PARAM_TABLE(rn_nic_param_table, "nic", RN_NIC_PARAMS);
#undef RN_PARAM_OWNER

struct rn_nic {
	struct rn_nic_env env;
	struct rn_nic_params params;
	char *name;
	struct rn_clock core, mac_clock;
	struct rn_nic_fifos fifo;
	struct rn_context_sram sram[RN_CONTEXT_TYPES];
	struct rn_wqe_slots sq_slots, rq_slots;
	struct rn_nic_identity identity;
	struct rn_doorbell *doorbell;
	struct rn_sched *sched;
	struct rn_wqe_fetch *wqe_fetch;
	struct rn_context_cache *context_cache;
	struct rn_pte_cache *pte_cache;
	struct rn_dma *dma;
	struct rn_transport *transport;
	struct rn_cqe *cqe;
	struct rn_eq *eq;
	struct rn_cmd *cmd;
	struct rn_mac *mac;
};

#define SECTION(member, table_)                                                                    \
	{                                                                                          \
		.table = &(table_), .offset = offsetof(struct rn_nic_params, member)               \
	}

const struct rn_nic_section rn_nic_sections[] = {
	SECTION(nic, rn_nic_param_table),
	SECTION(pcie, rn_pcie_param_table),
	SECTION(doorbell, rn_doorbell_param_table),
	SECTION(sched, rn_sched_param_table),
	SECTION(wqe_fetch, rn_wqe_fetch_param_table),
	SECTION(context_cache, rn_context_cache_param_table),
	SECTION(pte_cache, rn_pte_cache_param_table),
	SECTION(dma, rn_dma_param_table),
	SECTION(transport, rn_transport_param_table),
	SECTION(cqe, rn_cqe_param_table),
	SECTION(eq, rn_eq_param_table),
	SECTION(cmd, rn_cmd_param_table),
	SECTION(mac, rn_mac_param_table),
	{.table = NULL},
};

void rn_nic_params_init(struct rn_nic_params *params)
{
	for (const struct rn_nic_section *s = rn_nic_sections; s->table; s++)
		rn_params_set_defaults(s->table, (char *)params + s->offset);
}

static void make_memories(struct rn_nic *nic)
{
	static const uint32_t bytes[RN_CONTEXT_TYPES] = {
		[RN_CONTEXT_QP] = RN_QPC_BYTES,
		[RN_CONTEXT_CQ] = RN_CQC_BYTES,
		[RN_CONTEXT_SRQ] = RN_SRQC_BYTES,
	};

	for (unsigned type = 0; type < RN_CONTEXT_TYPES; type++) {
		struct rn_context_sram *sram = &nic->sram[type];

		sram->bytes = bytes[type];
		sram->count = rn_context_cache_lines(&nic->params.context_cache, type);
		sram->lines = rn_calloc(sram->count, sram->bytes);
		sram->before = rn_calloc(sram->count, sizeof(*sram->before));
	}
	nic->sq_slots.count = nic->params.nic.sq_slots;
	nic->sq_slots.slot = rn_calloc(nic->sq_slots.count, sizeof(struct rn_wqe));
	nic->rq_slots.count = nic->params.nic.rq_slots;
	nic->rq_slots.slot = rn_calloc(nic->rq_slots.count, sizeof(struct rn_wqe));
}

/* Whether somebody else stands in the place of the unit's C block. */
static bool is_replaced(const struct rn_nic *nic, const struct rn_unit_site *site)
{
	const struct rn_unit_builder *units = nic->env.units;

	return units && units->replace(units->arg, site);
}

/* Show the unit's C block, which @port's consumer is. */
static void show(const struct rn_nic *nic, const struct rn_unit_site *site,
		 const struct rn_fifo *port)
{
	const struct rn_unit_builder *units = nic->env.units;

	if (units)
		units->watch(units->arg, site, port->consumer);
}

static void make_doorbell(struct rn_nic *nic, const struct rn_doorbell_identity *identity)
{
	struct rn_nic_fifos *f = &nic->fifo;
	const struct rn_doorbell_ports ports = {
		.status = &f->hca_status,
		.mmio_write = &f->mmio_write,
		.mmio_read = &f->mmio_read,
		.mmio_read_rsp = &f->mmio_read_rsp,
		.sq_ring = &f->sq_ring,
		.blueflame = &f->blueflame,
		.cq_ring = &f->cq_ring,
		.rq_ring = &f->rq_ring,
		.cmd_ring = &f->cmd_ring,
	};
	const struct rn_unit_site site = {
		.unit = RN_UNIT_DOORBELL,
		.env = &nic->env,
		.table = &rn_doorbell_param_table,
		.params = &nic->params.doorbell,
		.ports = &ports,
		.identity = identity,
	};

	if (is_replaced(nic, &site))
		return;
	nic->doorbell = rn_doorbell_new(&nic->env, &nic->params.doorbell, identity, &ports);
	show(nic, &site, ports.mmio_write);
}

static void make_front(struct rn_nic *nic, const struct rn_doorbell_identity *identity)
{
	struct rn_nic_fifos *f = &nic->fifo;
	const struct rn_nic_params *p = &nic->params;

	make_doorbell(nic, identity);
	nic->sched = rn_sched_new(&nic->env, &p->sched,
				  &(struct rn_sched_ports){
					  .sq_ring = &f->sq_ring,
					  .turn = &f->turn,
					  .bind = &f->bind,
					  .grant = &f->grant,
				  });
	nic->wqe_fetch = rn_wqe_fetch_new(
		&nic->env, &p->wqe_fetch,
		&(struct rn_wqe_fetch_ports){
			.grant = &f->grant,
			.blueflame = &f->blueflame,
			.sq_free = &f->sq_free,
			.sq_forget = &f->sq_forget,
			.rq_fetch = &f->rq_fetch,
			.rq_free = &f->rq_free,
			.context_rsp = &f->context_rsp[RN_CONTEXT_CLIENT_WQE_FETCH],
			.sq_dma_rsp = &f->dma_rsp[RN_DMA_CH_WQE_SQ],
			.rq_dma_rsp = &f->dma_rsp[RN_DMA_CH_WQE_RQ],
			.bind = &f->bind,
			.work = &f->work,
			.rq_fetch_rsp = &f->rq_fetch_rsp,
			.context_req = &f->context_req[RN_CONTEXT_CLIENT_WQE_FETCH],
			.sq_dma_req = &f->dma_req[RN_DMA_CH_WQE_SQ],
			.rq_dma_req = &f->dma_req[RN_DMA_CH_WQE_RQ],
			.qpc = &nic->sram[RN_CONTEXT_QP],
			.sq_slots = &nic->sq_slots,
			.rq_slots = &nic->rq_slots,
		});
}

static void make_pte_cache(struct rn_nic *nic)
{
	struct rn_nic_fifos *f = &nic->fifo;
	struct rn_pte_cache_ports ports = {
		.release = &f->pte_release,
		.inval = &f->pte_inval,
		.base = &f->pte_base,
		.dma_rsp = &f->dma_rsp[RN_DMA_CH_PTE],
		.inval_done = &f->pte_inval_done,
		.dma_req = &f->dma_req[RN_DMA_CH_PTE],
	};
	const struct rn_unit_site site = {
		.unit = RN_UNIT_PTE_CACHE,
		.env = &nic->env,
		.table = &rn_pte_cache_param_table,
		.params = &nic->params.pte_cache,
		.ports = &ports,
	};

	for (unsigned i = 0; i < RN_PTE_CLIENT_COUNT; i++) {
		ports.req[i] = &f->pte_req[i];
		ports.rsp[i] = &f->pte_rsp[i];
	}
	if (is_replaced(nic, &site))
		return;
	nic->pte_cache = rn_pte_cache_new(&nic->env, &nic->params.pte_cache, &ports);
	show(nic, &site, ports.base);
}

static void make_caches(struct rn_nic *nic)
{
	struct rn_nic_fifos *f = &nic->fifo;
	struct rn_context_cache_ports context = {
		.base = &f->context_base,
		.dma_rsp = &f->dma_rsp[RN_DMA_CH_CONTEXT],
		.dma_req = &f->dma_req[RN_DMA_CH_CONTEXT],
	};

	for (unsigned i = 0; i < RN_CONTEXT_CLIENT_COUNT; i++) {
		context.req[i] = &f->context_req[i];
		context.rsp[i] = &f->context_rsp[i];
	}
	for (unsigned i = 0; i < RN_CONTEXT_TYPES; i++)
		context.sram[i] = &nic->sram[i];
	nic->context_cache = rn_context_cache_new(&nic->env, &nic->params.context_cache, &context);
	make_pte_cache(nic);
}

static void make_dma(struct rn_nic *nic)
{
	struct rn_nic_fifos *f = &nic->fifo;
	struct rn_dma_ports ports = {
		.pte_rsp = &f->pte_rsp[RN_PTE_CLIENT_DMA],
		.pte_req = &f->pte_req[RN_PTE_CLIENT_DMA],
		.pte_release = &f->pte_release,
		.posted = &f->posted,
		.nonposted = &f->nonposted,
		.completion = &f->completion,
	};

	for (unsigned i = 0; i < RN_DMA_CH_COUNT; i++) {
		ports.req[i] = &f->dma_req[i];
		ports.rsp[i] = &f->dma_rsp[i];
	}
	nic->dma = rn_dma_new(&nic->env, &nic->params.dma, &nic->params.pcie, &ports);
}

static void make_transport(struct rn_nic *nic)
{
	struct rn_nic_fifos *f = &nic->fifo;

	nic->transport =
		rn_transport_new(&nic->env, &nic->params.transport,
				 &(struct rn_transport_ports){
					 .work = &f->work,
					 .turn = &f->turn,
					 .sq_free = &f->sq_free,
					 .sq_forget = &f->sq_forget,
					 .rq_fetch = &f->rq_fetch,
					 .rq_fetch_rsp = &f->rq_fetch_rsp,
					 .rq_free = &f->rq_free,
					 .rq_ring = &f->rq_ring,
					 .tx_context_req = &f->context_req[RN_CONTEXT_CLIENT_TX],
					 .tx_context_rsp = &f->context_rsp[RN_CONTEXT_CLIENT_TX],
					 .rx_context_req = &f->context_req[RN_CONTEXT_CLIENT_RX],
					 .rx_context_rsp = &f->context_rsp[RN_CONTEXT_CLIENT_RX],
					 .rx_pte_req = &f->pte_req[RN_PTE_CLIENT_RX],
					 .rx_pte_rsp = &f->pte_rsp[RN_PTE_CLIENT_RX],
					 .tx_dma_req = &f->dma_req[RN_DMA_CH_TX],
					 .tx_dma_rsp = &f->dma_rsp[RN_DMA_CH_TX],
					 .resp_dma_req = &f->dma_req[RN_DMA_CH_RESP],
					 .resp_dma_rsp = &f->dma_rsp[RN_DMA_CH_RESP],
					 .rx_dma_req = &f->dma_req[RN_DMA_CH_RX],
					 .rx_dma_rsp = &f->dma_rsp[RN_DMA_CH_RX],
					 .read_data_dma_req = &f->dma_req[RN_DMA_CH_READ_DATA],
					 .read_data_dma_rsp = &f->dma_rsp[RN_DMA_CH_READ_DATA],
					 .tx_completion = &f->tx_completion,
					 .rx_completion = &f->rx_completion,
					 .tx_event = &f->tx_event,
					 .rx_event = &f->rx_event,
					 .tx_ctl = &f->tx_ctl,
					 .rx_ctl = &f->rx_ctl,
					 .tx_ctl_done = &f->tx_ctl_done,
					 .rx_ctl_done = &f->rx_ctl_done,
					 .tx_frame = &f->tx_frame,
					 .rx_frame = &f->rx_frame,
					 .qpc = &nic->sram[RN_CONTEXT_QP],
					 .sq_slots = &nic->sq_slots,
					 .rq_slots = &nic->rq_slots,
					 .identity = &nic->identity,
				 });
}

static void make_back(struct rn_nic *nic, const struct rn_cable *cable)
{
	struct rn_nic_fifos *f = &nic->fifo;
	const struct rn_nic_params *p = &nic->params;

	nic->cqe = rn_cqe_new(&nic->env, &p->cqe,
			      &(struct rn_cqe_ports){
				      .tx_completion = &f->tx_completion,
				      .rx_completion = &f->rx_completion,
				      .cq_ring = &f->cq_ring,
				      .ctl = &f->cq_ctl,
				      .context_rsp = &f->context_rsp[RN_CONTEXT_CLIENT_CQE],
				      .dma_rsp = &f->dma_rsp[RN_DMA_CH_CQE],
				      .event = &f->cqe_event,
				      .ctl_done = &f->cq_ctl_done,
				      .context_req = &f->context_req[RN_CONTEXT_CLIENT_CQE],
				      .dma_req = &f->dma_req[RN_DMA_CH_CQE],
				      .cqc = &nic->sram[RN_CONTEXT_CQ],
			      });
	nic->eq = rn_eq_new(&nic->env, &p->eq,
			    &(struct rn_eq_ports){
				    .cqe_event = &f->cqe_event,
				    .tx_event = &f->tx_event,
				    .rx_event = &f->rx_event,
				    .cmd_event = &f->cmd_event,
				    .ctl = &f->eq_ctl,
				    .dma_rsp = &f->dma_rsp[RN_DMA_CH_EQ],
				    .ctl_done = &f->eq_ctl_done,
				    .dma_req = &f->dma_req[RN_DMA_CH_EQ],
			    });
	nic->cmd = rn_cmd_new(&nic->env, &p->cmd,
			      &(struct rn_cmd_ports){
				      .cmd_ring = &f->cmd_ring,
				      .context_rsp = &f->context_rsp[RN_CONTEXT_CLIENT_CMD],
				      .inval_done = &f->pte_inval_done,
				      .dma_rsp = &f->dma_rsp[RN_DMA_CH_CMD],
				      .tx_ctl_done = &f->tx_ctl_done,
				      .rx_ctl_done = &f->rx_ctl_done,
				      .cq_ctl_done = &f->cq_ctl_done,
				      .eq_ctl_done = &f->eq_ctl_done,
				      .context_req = &f->context_req[RN_CONTEXT_CLIENT_CMD],
				      .context_base = &f->context_base,
				      .pte_base = &f->pte_base,
				      .inval = &f->pte_inval,
				      .dma_req = &f->dma_req[RN_DMA_CH_CMD],
				      .tx_ctl = &f->tx_ctl,
				      .rx_ctl = &f->rx_ctl,
				      .cq_ctl = &f->cq_ctl,
				      .eq_ctl = &f->eq_ctl,
				      .event = &f->cmd_event,
				      .status = &f->hca_status,
				      .eqs = p->eq.max_eqs,
				      .qpc = &nic->sram[RN_CONTEXT_QP],
				      .cqc = &nic->sram[RN_CONTEXT_CQ],
				      .identity = &nic->identity,
			      });
	nic->mac = rn_mac_new(&nic->env, &p->mac,
			      &(struct rn_mac_ports){
				      .tx_frame = &f->tx_frame,
				      .rx_frame = &f->rx_frame,
				      .line_out = &f->line_out,
				      .line_in = &f->line_in,
				      .cable = cable,
				      .identity = &nic->identity,
			      });
}

struct rn_nic *rn_nic_new(const struct rn_nic_env *env, const struct rn_nic_params *params,
			  const struct rn_doorbell_identity *identity, const struct rn_cable *cable)
{
	struct rn_nic *nic = rn_calloc(1, sizeof(*nic));

	nic->env = *env;
	nic->params = *params;
	nic->name = rn_strdup(env->name);
	nic->env.name = nic->name;
	rn_clock_init(&nic->core, "core", params->nic.core_hz);
	rn_clock_init(&nic->mac_clock, "mac", params->mac.clock_hz);
	nic->env.core = &nic->core;
	nic->env.mac = &nic->mac_clock;
	rn_nic_fifos_init(&nic->fifo, &nic->env, &nic->params, cable);
	make_memories(nic);
	make_front(nic, identity);
	make_caches(nic);
	make_dma(nic);
	make_transport(nic);
	make_back(nic, cable);
	return nic;
}

void rn_nic_free(struct rn_nic *nic)
{
	if (!nic)
		return;
	rn_mac_free(nic->mac);
	rn_cmd_free(nic->cmd);
	rn_eq_free(nic->eq);
	rn_cqe_free(nic->cqe);
	rn_transport_free(nic->transport);
	rn_dma_free(nic->dma);
	rn_pte_cache_free(nic->pte_cache);
	rn_context_cache_free(nic->context_cache);
	rn_wqe_fetch_free(nic->wqe_fetch);
	rn_sched_free(nic->sched);
	rn_doorbell_free(nic->doorbell);
	for (unsigned type = 0; type < RN_CONTEXT_TYPES; type++) {
		free(nic->sram[type].before);
		free(nic->sram[type].lines);
	}
	free(nic->sq_slots.slot);
	free(nic->rq_slots.slot);
	rn_nic_fifos_fini(&nic->fifo);
	free(nic->name);
	free(nic);
}

const char *rn_nic_params_check(const struct rn_nic_params *params)
{
	const char *problem = NULL;

	if (!rn_pcie_params_check(&params->pcie, &problem))
		return problem;
	problem = rn_context_cache_check(&params->context_cache);
	if (!problem)
		problem = rn_pte_cache_check(&params->pte_cache);
	if (!problem)
		problem = rn_mac_check(&params->mac);
	if (!problem && params->transport.max_qps < params->sched.max_qps)
		problem = "transport.max_qps: the scheduler has more queue pairs (sched.max_qps)";
	return problem;
}

void rn_nic_pcie_ports(struct rn_nic *nic, struct rn_pcie_ports *ports)
{
	struct rn_nic_fifos *f = &nic->fifo;

	*ports = (struct rn_pcie_ports){
		.posted = &f->posted,
		.nonposted = &f->nonposted,
		.mmio_read_rsp = &f->mmio_read_rsp,
		.completion = &f->completion,
		.mmio_write = &f->mmio_write,
		.mmio_read = &f->mmio_read,
	};
}

struct rn_fifo *rn_nic_line_out(struct rn_nic *nic)
{
	return &nic->fifo.line_out;
}

struct rn_fifo *rn_nic_line_in(struct rn_nic *nic)
{
	return &nic->fifo.line_in;
}

void rn_nic_count_discard(void *nic)
{
	struct rn_nic *self = nic;

	rn_mac_count_discard(self->mac);
}

struct rn_context_cache *rn_nic_context_cache(struct rn_nic *nic)
{
	return nic->context_cache;
}

struct rn_pte_cache *rn_nic_pte_cache(struct rn_nic *nic)
{
	return nic->pte_cache;
}
