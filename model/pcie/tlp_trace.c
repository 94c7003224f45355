#include "pcie/tlp_trace.h"

#include "nic/msg/dma.h"
#include "sim/buffer.h"

static const char *const channel_names[RN_DMA_CH_COUNT] = {
	[RN_DMA_CH_PTE] = "pte",       [RN_DMA_CH_CONTEXT] = "context",
	[RN_DMA_CH_WQE_SQ] = "wqe_sq", [RN_DMA_CH_WQE_RQ] = "wqe_rq",
	[RN_DMA_CH_TX] = "tx",	       [RN_DMA_CH_RESP] = "resp",
	[RN_DMA_CH_RX] = "rx",	       [RN_DMA_CH_READ_DATA] = "read_data",
	[RN_DMA_CH_CQE] = "cqe",       [RN_DMA_CH_EQ] = "eq",
	[RN_DMA_CH_CMD] = "cmd",
};

static const char *type_name(const struct rn_tlp *tlp)
{
	static const char *const names[RN_TLP_TYPE_COUNT] = {
		[RN_TLP_MWR] = "MWr",
		[RN_TLP_MSI] = "MSI",
		[RN_TLP_MRD] = "MRd",
		[RN_TLP_CPL] = "CplD",
	};

	return tlp->type == RN_TLP_CPL && tlp->status != RN_TLP_OK ? "Cpl" : names[tlp->type];
}

static struct rn_tlp_record record_of(const struct rn_tlp_trace *trace)
{
	return (struct rn_tlp_record){
		.first_bit_ps = trace->first_bit_ps,
		.arrival_ps = trace->arrival_ps,
		.host = trace->env->host,
		.direction = (uint8_t)trace->direction,
		.status = "ok",
		.tag = RN_TLP_LOG_NO_TAG,
	};
}

static void add_hash(const struct rn_tlp_trace *trace, struct rn_tlp_record *record,
		     const void *data)
{
	if (!rn_tlp_log_has_hash(trace->env->log) || !data)
		return;
	record->has_hash = true;
	record->hash = rn_tlp_log_hash(data, record->len);
}

void rn_tlp_trace_memory(const struct rn_tlp_trace *trace, const struct rn_tlp *tlp,
			 uint32_t offset, uint32_t len)
{
	struct rn_tlp_record record = record_of(trace);

	record.type = type_name(tlp);
	record.channel = tlp->channel < RN_DMA_CH_COUNT ? channel_names[tlp->channel] : "?";
	record.addr = tlp->addr + offset;
	record.len = len;
	if (tlp->type == RN_TLP_MRD || tlp->type == RN_TLP_CPL)
		record.tag = tlp->tag;
	if (tlp->status != RN_TLP_OK)
		record.status = "abort";
	if (len && (tlp->type == RN_TLP_MWR || tlp->type == RN_TLP_CPL))
		add_hash(trace, &record,
			 rn_buffer_data(trace->env->buffers, tlp->buf) + tlp->buf_off + offset);
	rn_tlp_log_add(trace->env->log, &record);
}

void rn_tlp_trace_mmio(const struct rn_tlp_trace *trace, const char *type, uint64_t offset,
		       uint32_t len, uint32_t tag, const void *data)
{
	struct rn_tlp_record record = record_of(trace);

	record.type = type;
	record.channel = "mmio";
	record.addr = offset;
	record.len = len;
	record.tag = tag;
	add_hash(trace, &record, data);
	rn_tlp_log_add(trace->env->log, &record);
}
