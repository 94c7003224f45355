/* The hand-made faults of the RTL (`RN_FAULT in rtl/doorbell): +fault=NUMBER selects one. */
#ifndef RN_TEST_COSIM_DOORBELL_FAULTS_H
#define RN_TEST_COSIM_DOORBELL_FAULTS_H

#include <stdbool.h>

struct fault {
	unsigned number;
	const char *geometry; /* in which it can be seen */
	bool is_met;	      /* by programs: a recording finds it */
	const char *what;
};

static const struct fault faults[] = {
	{1, "shipped", true, "a doorbell whose index ends in 15 is dropped"},
	{2, "shipped", true, "CQ number and consumer index of an arm swapped"},
	{3, "shipped", true, "doorbell with the page beside its own"},
	{4, "shipped", true, "producer index truncated to 8 bits"},
	{5, "shipped", true, "write index of the fifo goes round an entry early"},
	{6, "shipped", true, "register read answered a cycle late"},
	{7, "shipped", true, "BlueFlame WQE with a piece too many"},
	{8, "shipped", true, "halves of a collected BlueFlame piece swapped"},
	{9, "shipped", true, "sequence of an arm lost"},
	{10, "shipped", true, "write decoded a cycle late"},
	{11, "shipped", true, "lower half of the command queue's address ignored"},
	{12, "shipped", true, "ring of a BlueFlame WQE one short"},
	{13, "shipped", true, "capability registers mixed up"},
	{14, "shipped", true, "command ring sent twice"},
	{15, "shipped", true, "upper half of the answer to a read of 4 bytes not 0"},
	{16, "shipped", true, "consumer index of an arm truncated to 4 bits"},
	{17, "shipped", true, "command producer index truncated to 4 bits"},
	{18, "shipped", true, "BlueFlame data for the queue pair beside its own"},
	{19, "shipped", true, "writes taken in with a pause between"},
	{20, "shipped", false, "register read passes writes that wait at the port"},
	{21, "shipped", false, "doorbell gone although the scheduler's port was not ready"},
	{22, "shipped", false, "order of BlueFlame pieces ignored"},
	{23, "stress", false, "kept doorbell lost when another one leaves"},
	{24, "stress", false, "a newer doorbell does not replace the kept one"},
	{25, "shipped", false, "command rings do not merge"},
	{26, "shipped", true, "ring of a BlueFlame WQE with the page beside its own"},
	{27, "shipped", true, "index of BlueFlame data one too far"},
	{28, "shipped", true, "arm with the page beside its own"},
	{29, "shipped", true, "register read waits for a write too many"},
	{30, "shipped", true, "QPN of a doorbell truncated to 4 bits"},
};

static const unsigned fault_count = sizeof(faults) / sizeof(faults[0]);

#endif
