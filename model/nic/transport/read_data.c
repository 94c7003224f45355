/*
 * Transport tx: data of READ responses on its way into the local segments. One packet is being issued
 * at a time, a DMA write a cycle; its slot is held until every write has been answered.
 */
#include "base/bits.h"
#include "base/mem.h"
#include "nic/transport/tx.h"

void rn_tx_writes_init(struct rn_tx *tx)
{
	uint32_t slots = tx->params->read_data_slots;

	tx->write = rn_calloc(slots, sizeof(*tx->write));
	for (uint32_t i = 0; i < slots; i++)
		tx->write[i].next = i + 2 > slots ? RN_NONE : i + 2;
	tx->write_free = 1;
}

bool rn_tx_can_write(const struct rn_tx *tx)
{
	return tx->write_free && !tx->scatter.active;
}

static void seek(struct rn_tx_scatter *scatter, const struct rn_tx_sge_list *list, uint64_t offset)
{
	scatter->sge = 0;
	while (scatter->sge < list->count && offset >= list->sge[scatter->sge].bytes)
		offset -= list->sge[scatter->sge++].bytes;
	scatter->sge_off = (uint32_t)offset;
}

void rn_tx_write_begin(struct rn_tx *tx, const struct rn_hw_qpc *qpc, uint32_t ref, uint32_t packet,
		       uint64_t offset)
{
	struct rn_tx_entry *entry = rn_tx_entry_at(tx, ref);
	const struct rn_packet *from = rn_packet_at(tx->env->packets, packet);
	uint32_t write = tx->write_free;

	RN_ASSERT(rn_tx_can_write(tx) && entry->sge_list);
	tx->write_free = tx->write[write - 1].next;
	tx->write[write - 1] = (struct rn_tx_write){
		.packet = packet,
		.qpn = entry->qpn,
		.entry = ref,
		.generation = entry->generation,
	};
	entry->writes++;
	tx->flow[entry->qpn].inflight++;
	tx->scatter = (struct rn_tx_scatter){
		.active = true,
		.last = entry->complete,
		.write = write,
		.sge_list = entry->sge_list,
		.pd = qpc->pd,
		.left_bytes = from->payload_bytes,
		.buf_off = from->payload_off,
	};
	seek(&tx->scatter, &tx->sge_list[entry->sge_list - 1], offset);
}

static void end_write(struct rn_tx *tx, uint32_t ref)
{
	struct rn_tx_write *write = &tx->write[ref - 1];
	struct rn_tx_entry *entry = rn_tx_entry_at(tx, write->entry);

	rn_packet_put(tx->env->packets, write->packet);
	tx->flow[write->qpn].inflight--;
	tx->freed = true;
	write->next = tx->write_free;
	tx->write_free = ref;
	if (entry->generation != write->generation)
		return;
	if (write->status != RN_DMA_OK && entry->status == RN_WC_SUCCESS) {
		tx->count->local_protection_errors++;
		entry->status = RN_WC_LOC_PROT_ERR;
	}
	entry->writes--;
	if (!entry->writes && (entry->complete || entry->status != RN_WC_SUCCESS))
		rn_tx_add_todo(tx, write->qpn, RN_TODO_RETIRE);
}

static const struct rn_sge *next_sge(struct rn_tx_scatter *scatter,
				     const struct rn_tx_sge_list *list)
{
	while (scatter->sge < list->count && scatter->sge_off == list->sge[scatter->sge].bytes) {
		scatter->sge++;
		scatter->sge_off = 0;
	}
	return scatter->sge < list->count ? &list->sge[scatter->sge] : NULL;
}

static void end_scatter(struct rn_tx *tx)
{
	tx->scatter.active = false;
	tx->freed = true;
	if (!tx->write[tx->scatter.write - 1].pending)
		end_write(tx, tx->scatter.write);
}

void rn_tx_scatter_step(struct rn_tx *tx)
{
	struct rn_tx_scatter *scatter = &tx->scatter;

	if (!scatter->active)
		return;

	struct rn_tx_write *write = &tx->write[scatter->write - 1];
	const struct rn_sge *sge = next_sge(scatter, &tx->sge_list[scatter->sge_list - 1]);

	if (!sge) {
		write->status = RN_DMA_PROTECTION;
		end_scatter(tx);
		return;
	}
	if (!rn_fifo_can_push(tx->ports.read_data_dma_req)) {
		tx->stall = RN_STALL_OUTPUT;
		return;
	}

	uint32_t bytes = (uint32_t)rn_min_u64(scatter->left_bytes, sge->bytes - scatter->sge_off);
	bool is_end = bytes == scatter->left_bytes;

	rn_fifo_push(tx->ports.read_data_dma_req,
		     &(struct rn_dma_req){
			     .op = RN_DMA_WRITE,
			     .flags = is_end && scatter->last ? RN_DMA_LAST : 0,
			     .access = RN_ACCESS_LOCAL_WRITE,
			     .token = (uint16_t)(scatter->write - 1),
			     .buf = rn_packet_at(tx->env->packets, write->packet)->payload_buf,
			     .buf_off = scatter->buf_off,
			     .len = bytes,
			     .key = sge->lkey,
			     .pd = scatter->pd,
			     .addr = sge->va + scatter->sge_off,
		     });
	write->pending++;
	scatter->sge_off += bytes;
	scatter->buf_off = (uint16_t)(scatter->buf_off + bytes);
	scatter->left_bytes -= bytes;
	tx->busy = true;
	if (is_end)
		end_scatter(tx);
	else
		rn_block_wake_next(&tx->block);
}

void rn_tx_take_writes(struct rn_tx *tx)
{
	struct rn_dma_rsp rsp;

	while (rn_fifo_pop(tx->ports.read_data_dma_rsp, &rsp)) {
		RN_ASSERT(rsp.token < tx->params->read_data_slots);

		struct rn_tx_write *write = &tx->write[rsp.token];

		RN_ASSERT(write->pending);
		if (rsp.status != RN_DMA_OK)
			write->status = rsp.status;
		tx->busy = true;
		if (!--write->pending &&
		    !(tx->scatter.active && tx->scatter.write == rsp.token + 1u))
			end_write(tx, rsp.token + 1u);
	}
}
