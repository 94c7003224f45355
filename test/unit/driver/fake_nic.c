/*
 * See fake_nic.h. Commands take 1 us each, an interrupt 1.5 us, a register read 500 ns.
 */
#include "fake_nic.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

#include <stdlib.h>

#define COMMAND_PS UINT64_C(1000000)
#define INTERRUPT_PS UINT64_C(1500000)
#define READ_PS UINT64_C(500000)
#define EQS 65

struct fake_eq {
	struct rn_hw_eqe *ring;
	uint32_t log, pi, vector;
	bool live, pending;
};

struct rn_root_complex {
	struct rn_sim *sim;
	struct rn_host_memory *memory;
	void (*msi)(void *arg, uint32_t vector);
	void *msi_arg;
	uint32_t registers[16];
	struct rn_wake read_wake, command_wake, msi_wake;
	void (*read_done)(void *arg, uint64_t value);
	void *read_arg;
	uint32_t read_offset;
	uint32_t pi, ci;
	struct rn_hw_init_hca hca;
	struct fake_eq eq[EQS];
	uint32_t commands[256];
	uint8_t fail_opcode, fail_status;
	bool full;
	struct fake_write write[FAKE_NIC_WRITES];
	uint32_t writes;
};

static void *at(struct rn_root_complex *nic, uint64_t pa, uint64_t bytes)
{
	void *p = rn_host_memory_at(nic->memory, pa, bytes);

	RN_ASSERT(p);
	return p;
}

struct rn_hw_qpc *fake_nic_qpc(struct rn_root_complex *nic, uint32_t qpn)
{
	return at(nic, nic->hca.qpc_pa + (uint64_t)qpn * RN_QPC_BYTES, RN_QPC_BYTES);
}

struct rn_hw_cqc *fake_nic_cqc(struct rn_root_complex *nic, uint32_t cqn)
{
	return at(nic, nic->hca.cqc_pa + (uint64_t)cqn * RN_CQC_BYTES, RN_CQC_BYTES);
}

struct rn_hw_mpt *fake_nic_mpt(struct rn_root_complex *nic, uint32_t key)
{
	return at(nic, nic->hca.mpt_pa + (uint64_t)(key >> 8) * RN_MPT_BYTES, RN_MPT_BYTES);
}

uint64_t fake_nic_translate(struct rn_root_complex *nic, uint32_t key, uint64_t va)
{
	const struct rn_hw_mpt *mpt = fake_nic_mpt(nic, key);
	uint64_t entry;

	if (mpt->state != 1 || mpt->key != key || va < mpt->start_va ||
	    va - mpt->start_va >= mpt->length)
		return 0;
	memcpy(&entry,
	       at(nic,
		  nic->hca.mtt_pa +
			  (mpt->mtt_index + (va >> 12) - (mpt->start_va >> 12)) * RN_MTT_BYTES,
		  RN_MTT_BYTES),
	       sizeof(entry));
	return entry & RN_MTT_PRESENT ? (entry & ~UINT64_C(1)) + (va & 4095) : 0;
}

/* --- events --- */

void fake_nic_raise(struct rn_root_complex *nic, uint32_t eqn, uint8_t type, uint8_t subtype,
		    uint32_t number)
{
	struct fake_eq *eq = &nic->eq[eqn];

	if (!eq->live)
		return;

	struct rn_hw_eqe *eqe = &eq->ring[eq->pi & ((1u << eq->log) - 1)];

	*eqe = (struct rn_hw_eqe){
		.type = type,
		.subtype = subtype,
		.number = number,
		.owner = (uint8_t)(~(eq->pi >> eq->log) & 1),
	};
	eq->pi++;
	eq->pending = true;
	rn_wake_at(nic->sim, &nic->msi_wake, rn_sim_now_ps(nic->sim) + INTERRUPT_PS);
}

static void send_msi(void *arg)
{
	struct rn_root_complex *nic = arg;

	for (uint32_t n = 0; n < EQS; n++) {
		if (!nic->eq[n].pending)
			continue;
		nic->eq[n].pending = false;
		nic->msi(nic->msi_arg, nic->eq[n].vector);
	}
}

/* --- commands --- */

static uint8_t create_eq(struct rn_root_complex *nic, uint32_t eqn, const struct rn_hw_eqc *eqc)
{
	nic->eq[eqn] = (struct fake_eq){
		.ring = at(nic, eqc->base_pa, (uint64_t)RN_EQE_BYTES << eqc->log_eqes),
		.log = eqc->log_eqes,
		.vector = eqc->vector,
		.live = true,
	};
	return RN_CMD_OK;
}

static uint8_t modify_qp(struct rn_hw_qpc *qpc, const struct rn_hw_modify_qp *modify)
{
	if (!qpc->service || qpc->state != modify->cur_state)
		return RN_CMD_BAD_STATE;
	memcpy(qpc, modify->config, sizeof(modify->config));
	qpc->state = modify->new_state;
	if (qpc->state == RN_QPS_RESET) {
		memset(qpc->requester, 0, sizeof(qpc->requester));
		memset(qpc->responder, 0, sizeof(qpc->responder));
	}
	return RN_CMD_OK;
}

static uint8_t destroy(void *context, uint32_t bytes, const uint8_t *alive)
{
	const uint8_t was = *alive;

	memset(context, 0, bytes);
	return was ? RN_CMD_OK : RN_CMD_BAD_STATE;
}

static uint8_t execute(struct rn_root_complex *nic, const struct rn_hw_cmd *cmd)
{
	const void *in = cmd->in_bytes ? at(nic, cmd->in_pa, cmd->in_bytes) : NULL;
	void *out = cmd->out_bytes ? at(nic, cmd->out_pa, cmd->out_bytes) : NULL;
	const uint32_t n = cmd->modifier;

	switch (cmd->opcode) {
	case RN_CMD_INIT_HCA:
		memcpy(&nic->hca, in, sizeof(nic->hca));
		return RN_CMD_OK;
	case RN_CMD_CREATE_EQ:
		return create_eq(nic, n, in);
	case RN_CMD_CREATE_MKEY:
		if (fake_nic_mpt(nic, n << 8)->state)
			return RN_CMD_BAD_STATE;
		memcpy(fake_nic_mpt(nic, n << 8), in, RN_MPT_BYTES);
		return RN_CMD_OK;
	case RN_CMD_DESTROY_MKEY:
		return destroy(fake_nic_mpt(nic, n << 8), RN_MPT_BYTES,
			       &fake_nic_mpt(nic, n << 8)->state);
	case RN_CMD_CREATE_CQ:
	case RN_CMD_MODIFY_CQ:
		memcpy(fake_nic_cqc(nic, n), in, RN_CQC_BYTES);
		return RN_CMD_OK;
	case RN_CMD_DESTROY_CQ:
		return destroy(fake_nic_cqc(nic, n), RN_CQC_BYTES, &fake_nic_cqc(nic, n)->state);
	case RN_CMD_CREATE_QP:
		memcpy(fake_nic_qpc(nic, n), in, RN_QPC_BYTES);
		return RN_CMD_OK;
	case RN_CMD_MODIFY_QP:
		return modify_qp(fake_nic_qpc(nic, n), in);
	case RN_CMD_QUERY_QP:
		memcpy(out, fake_nic_qpc(nic, n), RN_QPC_BYTES);
		return RN_CMD_OK;
	case RN_CMD_DESTROY_QP:
		return destroy(fake_nic_qpc(nic, n), RN_QPC_BYTES, &fake_nic_qpc(nic, n)->service);
	default:
		return RN_CMD_BAD_OPCODE;
	}
}

static void run_command(void *arg)
{
	struct rn_root_complex *nic = arg;
	const uint64_t base = nic->registers[RN_REG_CMD_BASE_LO / 4] |
			      (uint64_t)nic->registers[RN_REG_CMD_BASE_HI / 4] << 32;
	const uint32_t slot = nic->ci % RN_CMD_QUEUE_ENTRIES;

	if (nic->ci == nic->pi)
		return;

	struct rn_hw_cmd *cmd = at(nic, base + (uint64_t)slot * RN_CMD_BYTES, RN_CMD_BYTES);
	const bool fails = nic->fail_status && cmd->opcode == nic->fail_opcode;

	RN_ASSERT(cmd->owner == 1);
	nic->commands[cmd->opcode]++;
	cmd->status = fails ? nic->fail_status : execute(nic, cmd);
	cmd->owner = 0;
	nic->ci++;
	fake_nic_raise(nic, 0, RN_EQE_COMMAND, 0, slot);
	if (nic->ci != nic->pi)
		rn_wake_at(nic->sim, &nic->command_wake, rn_sim_now_ps(nic->sim) + COMMAND_PS);
}

/* --- the root complex's interface --- */

bool rn_root_complex_mmio_write(struct rn_root_complex *nic, uint64_t at_ps, uint64_t offset,
				const void *data, uint32_t len)
{
	RN_ASSERT(at_ps >= rn_sim_now_ps(nic->sim) && len >= 4 && len <= 64);
	if (offset < RN_UAR_BASE) {
		RN_ASSERT(len == 4 && offset < sizeof(nic->registers));
		memcpy(&nic->registers[offset / 4], data, 4);
		if (offset != RN_REG_CMD_DOORBELL)
			return true;
		memcpy(&nic->pi, data, 4);
		RN_ASSERT(nic->pi - nic->ci <= RN_CMD_QUEUE_ENTRIES);
		rn_wake_at(nic->sim, &nic->command_wake, at_ps + COMMAND_PS);
		return true;
	}
	if (nic->full)
		return false;

	struct fake_write *write = &nic->write[nic->writes++ % FAKE_NIC_WRITES];

	*write = (struct fake_write){.offset = offset, .len = len};
	memcpy(write->data, data, len);
	return true;
}

static void answer_read(void *arg)
{
	struct rn_root_complex *nic = arg;

	nic->read_done(nic->read_arg, nic->registers[nic->read_offset / 4]);
}

bool rn_root_complex_mmio_read(struct rn_root_complex *nic, uint64_t at_ps, uint64_t offset,
			       uint32_t len, void (*done)(void *arg, uint64_t value), void *arg)
{
	RN_ASSERT(len == 4 && !rn_wake_is_pending(&nic->read_wake));
	nic->read_offset = (uint32_t)offset;
	nic->read_done = done;
	nic->read_arg = arg;
	rn_wake_at(nic->sim, &nic->read_wake, at_ps + READ_PS);
	return true;
}

void rn_root_complex_set_msi(struct rn_root_complex *nic, void (*fn)(void *arg, uint32_t vector),
			     void *arg)
{
	nic->msi = fn;
	nic->msi_arg = arg;
}

void rn_root_complex_set_abort_hook(struct rn_root_complex *nic, void (*fn)(void *arg, uint64_t pa),
				    void *arg)
{
	(void)nic;
	(void)fn;
	(void)arg;
}

void rn_root_complex_set_write_hook(struct rn_root_complex *nic, void (*fn)(void *arg, uint64_t pa),
				    void *arg)
{
	(void)nic;
	(void)fn;
	(void)arg;
}

struct rn_host_memory *rn_root_complex_memory(struct rn_root_complex *nic)
{
	return nic->memory;
}

/* --- for tests --- */

struct rn_root_complex *fake_nic_new(struct rn_sim *sim)
{
	struct rn_root_complex *nic = rn_calloc(1, sizeof(*nic));

	nic->sim = sim;
	nic->memory = rn_host_memory_new();
	nic->registers[RN_REG_ID / 4] = RN_HW_ID;
	nic->registers[RN_REG_VERSION / 4] = RN_HW_INTERFACE_VERSION;
	nic->registers[RN_REG_VENDOR / 4] = 0x2c9;
	nic->registers[RN_REG_PART / 4] = 4119;
	nic->registers[RN_REG_CAP_QUEUES / 4] = 16 | 16 << 8 | 6 << 16 | 10u << 24;
	nic->registers[RN_REG_CAP_MEMORY / 4] = 16 | 22 << 8 | 12 << 16;
	nic->registers[RN_REG_CAP_WQE / 4] = 30 | 15 << 8 | 15 << 16 | 22u << 24;
	rn_wake_init(sim, &nic->read_wake, answer_read, nic);
	rn_wake_init(sim, &nic->command_wake, run_command, nic);
	rn_wake_init(sim, &nic->msi_wake, send_msi, nic);
	return nic;
}

void fake_nic_free(struct rn_root_complex *nic)
{
	rn_wake_cancel(nic->sim, &nic->read_wake);
	rn_wake_cancel(nic->sim, &nic->command_wake);
	rn_wake_cancel(nic->sim, &nic->msi_wake);
	rn_host_memory_free(nic->memory);
	free(nic);
}

void fake_nic_set_register(struct rn_root_complex *nic, uint32_t offset, uint32_t value)
{
	nic->registers[offset / 4] = value;
}

void fake_nic_set_full(struct rn_root_complex *nic, bool full)
{
	nic->full = full;
}

void fake_nic_fail(struct rn_root_complex *nic, uint8_t opcode, uint8_t status)
{
	nic->fail_opcode = opcode;
	nic->fail_status = status;
}

uint32_t fake_nic_writes(const struct rn_root_complex *nic)
{
	return nic->writes;
}

const struct fake_write *fake_nic_write(const struct rn_root_complex *nic, uint32_t idx)
{
	return &nic->write[idx % FAKE_NIC_WRITES];
}

uint32_t fake_nic_commands(const struct rn_root_complex *nic, uint8_t opcode)
{
	return nic->commands[opcode];
}
