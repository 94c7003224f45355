/*
 * A NIC without hardware, for tests of the driver: behind the root complex's interface it executes commands
 * directly on host memory after a fixed time, raises events, and records doorbell writes.
 */
#ifndef RN_TEST_FAKE_NIC_H
#define RN_TEST_FAKE_NIC_H

#include <stdbool.h>
#include <stdint.h>

#include "hw/gen/rnic_hw.h"
#include "pcie/root_complex.h"
#include "sim/sim.h"

#define FAKE_NIC_WRITES 256

struct fake_write {
	uint64_t offset;
	uint32_t len;
	uint8_t data[64];
};

struct rn_root_complex *fake_nic_new(struct rn_sim *sim);
void fake_nic_free(struct rn_root_complex *nic);

/** Register values that the next reads give. */
void fake_nic_set_register(struct rn_root_complex *nic, uint32_t offset, uint32_t value);

/** Whether doorbell writes are taken; commands always are. */
void fake_nic_set_full(struct rn_root_complex *nic, bool full);

/** Commands with this opcode fail with @status; RN_CMD_OK: none does. */
void fake_nic_fail(struct rn_root_complex *nic, uint8_t opcode, uint8_t status);

/** Doorbell writes so far, and the n-th. */
uint32_t fake_nic_writes(const struct rn_root_complex *nic);
const struct fake_write *fake_nic_write(const struct rn_root_complex *nic, uint32_t idx);

/** Commands executed with this opcode. */
uint32_t fake_nic_commands(const struct rn_root_complex *nic, uint8_t opcode);

/** Write an EQE and send its MSI-X. */
void fake_nic_raise(struct rn_root_complex *nic, uint32_t eqn, uint8_t type, uint8_t subtype,
		    uint32_t number);

/** Contexts as the NIC holds them (in ICM). */
struct rn_hw_qpc *fake_nic_qpc(struct rn_root_complex *nic, uint32_t qpn);
struct rn_hw_cqc *fake_nic_cqc(struct rn_root_complex *nic, uint32_t cqn);
struct rn_hw_mpt *fake_nic_mpt(struct rn_root_complex *nic, uint32_t key);

/** Physical address that the key's translation gives for @va; 0 when key, bounds or entry refuse. */
uint64_t fake_nic_translate(struct rn_root_complex *nic, uint32_t key, uint64_t va);

#endif
