/*
 * A simulator without a simulation, for tests of the verbs library: a child process that serves the control
 * protocol and executes work requests between its clients' QPs directly on their memory. It models no time
 * and checks little; what it refuses it refuses as the driver does.
 */
#ifndef RN_TEST_FAKE_SIM_H
#define RN_TEST_FAKE_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define FAKE_CLOCK_PS UINT64_C(123456789000) /* what its clock always shows */

struct fake_sim_options {
	bool blueflame;
	uint32_t run_pages;   /* longest run of frames in one answer; 0: 8 */
	uint64_t arena_bytes; /* 0: 1 TiB, sparse */
};

/** Start it and point the environment at it. */
void fake_sim_start(const struct fake_sim_options *options);

/** Kill it without a farewell. */
void fake_sim_kill(void);

/** End it and remove its socket. */
void fake_sim_stop(void);

/** Read memory of this process as the fake NIC sees it: through its frames. */
uint8_t fake_sim_peek(const void *addr);

/** Write it likewise. */
void fake_sim_poke(const void *addr, uint8_t value);

/** Pages pinned by all clients. */
unsigned fake_sim_pinned_pages(void);

#endif
