/*
 * DMA writes that found no memory. Pages in the arena cannot go away; what is reached through the process can: unmapped,
 * protected, cut off its file. A posted write has no completion, so the NIC does not know; the root port's error
 * report names the address, and every queue pair that could have written there ends with an error. Nothing is lost in silence.
 */
#include <stdlib.h>
#include <string.h>

#include "driver/internal.h"
#include "driver/qp_state.h"

static struct rn_driver_client *client_of(const struct rn_driver *driver, int arena)
{
	for (struct rn_list *node = driver->clients.next; node != &driver->clients;
	     node = node->next) {
		struct rn_driver_client *client =
			rn_list_entry(node, struct rn_driver_client, link);

		if (client->process_arena == arena)
			return client;
	}
	return NULL;
}

static bool has_region_at(const struct rn_driver_client *client, const struct rn_pd *pd,
			  uint64_t va)
{
	const struct rn_list *node;

	for (node = client->mrs.next; node != &client->mrs; node = node->next) {
		const struct rn_mkey *mkey = rn_list_entry(node, struct rn_mkey, link);

		if (mkey->pd == pd && va >= mkey->va &&
		    va - mkey->va < (uint64_t)mkey->pages * RN_FRAME_BYTES)
			return true;
	}
	return false;
}

struct ending {
	struct rn_driver *driver;
	uint32_t qpn; /* the queue pair may be gone when the command has completed */
};

/* Told when it is so: who then posts gets an error. A command that a request of the program overtook changes nothing. */
static void ended(void *arg, enum rn_cmd_status status, const void *out)
{
	struct ending *ending = arg;

	(void)out;
	if (status == RN_CMD_OK)
		rn_event_qp_fatal(ending->driver, ending->qpn);
	free(ending);
}

static void fail(struct rn_qp_object *qp)
{
	struct rn_hw_modify_qp input = {
		.cur_state = qp->state,
		.new_state = RN_QPS_ERR,
		.attr_mask = RN_QP_STATE,
	};
	struct rn_hw_qpc config = qp->config;
	struct ending *ending = rn_calloc(1, sizeof(*ending));

	*ending = (struct ending){qp->client->driver, qp->qpn};
	qp->failed = true;
	config.state = RN_QPS_ERR;
	memcpy(input.config, &config, sizeof(input.config));
	rn_command_submit(qp->client->driver, RN_CMD_MODIFY_QP, qp->qpn, &input, sizeof(input), 0,
			  ended, ending);
}

void rn_fault_write(void *arg, uint64_t pa)
{
	struct rn_driver *driver = arg;
	const uint64_t va = pa & ((UINT64_C(1) << RN_PA_OFFSET_BITS) - 1);
	struct rn_driver_client *client = client_of(driver, (int)(pa >> RN_PA_OFFSET_BITS));
	struct rn_list *node;

	driver->counters.dma_faults++;
	if (!client || client->leaving)
		return;
	for (node = client->qps.next; node != &client->qps; node = node->next) {
		struct rn_qp_object *qp = rn_list_entry(node, struct rn_qp_object, link);

		if (qp->live && !qp->failed && qp->state >= RN_QPS_RTR && qp->state != RN_QPS_ERR &&
		    has_region_at(client, qp->pd, va))
			fail(qp);
	}
}
