#include "nic/transport/transport.h"

#include <stdlib.h>

#include "base/bits.h"
#include "base/mem.h"
#include "nic/transport/counters.h"
#include "nic/transport/link.h"
#include "nic/transport/rx.h"
#include "nic/transport/tx.h"

#define RN_PARAM_OWNER rn_transport_params
RN_PARAM_TABLE(rn_transport_param_table, "transport", RN_TRANSPORT_PARAMS);

#define COUNTER_ROW(field, unit, help)                                                             \
	RN_COUNTER_ROW(struct rn_transport_counters, field, unit, help)

static const struct rn_counter_desc counter_descs[] = {RN_TRANSPORT_COUNTERS(COUNTER_ROW)};

struct rn_transport {
	struct rn_transport_params params;
	struct rn_transport_counters count;
	char *tx_name;
	char *rx_name;
	struct rn_fifo response; /* rx -> tx: struct rn_response */
	struct rn_fifo reply;	 /* rx -> tx: struct rn_reply */
	struct rn_fifo feedback; /* tx -> rx: struct rn_feedback */
	struct rn_tx *tx;
	struct rn_rx *rx;
};

static void make_fifo(const struct rn_nic_env *env, struct rn_fifo *fifo, const char *name,
		      uint32_t depth, uint32_t entry_bytes)
{
	char *full = rn_asprintf("%s.transport.%s", env->name, name);

	rn_fifo_init(fifo, env->sim, full, depth, entry_bytes, 1);
	free(full);
	rn_stats_add_fifo(env->stats, fifo);
}

struct rn_transport *rn_transport_new(const struct rn_nic_env *env,
				      const struct rn_transport_params *params,
				      const struct rn_transport_ports *ports)
{
	struct rn_transport *transport = rn_calloc(1, sizeof(*transport));
	char *name = rn_asprintf("%s.transport", env->name);

	transport->params = *params;
	params = &transport->params;
	transport->tx_name = rn_asprintf("%s.tx", name);
	transport->rx_name = rn_asprintf("%s.rx", name);
	make_fifo(env, &transport->response, "response", params->response_fifo_depth,
		  sizeof(struct rn_response));
	make_fifo(env, &transport->reply, "reply", params->reply_fifo_depth,
		  sizeof(struct rn_reply));
	make_fifo(env, &transport->feedback, "feedback", params->feedback_fifo_depth,
		  sizeof(struct rn_feedback));
	transport->tx = rn_tx_new(env, params, ports, transport->tx_name, &transport->count);
	transport->rx = rn_rx_new(env, params, ports, transport->rx_name, &transport->count);
	rn_tx_link(transport->tx, &transport->response, &transport->reply, &transport->feedback);
	rn_rx_link(transport->rx, &transport->response, &transport->reply, &transport->feedback);
	rn_stats_add_block(env->stats, &transport->tx->block);
	rn_stats_add_block(env->stats, &transport->rx->block);
	rn_stats_add_counters(env->stats, name, counter_descs, RN_ARRAY_LEN(counter_descs),
			      &transport->count);
	free(name);
	return transport;
}

void rn_transport_free(struct rn_transport *transport)
{
	if (!transport)
		return;
	rn_tx_free(transport->tx);
	rn_rx_free(transport->rx);
	rn_fifo_fini(&transport->response);
	rn_fifo_fini(&transport->reply);
	rn_fifo_fini(&transport->feedback);
	free(transport->tx_name);
	free(transport->rx_name);
	free(transport);
}
