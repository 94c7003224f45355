#include "fabric/transit.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

static bool is_before(const struct rn_transit *a, const struct rn_transit *b)
{
	if (a->at_ps != b->at_ps)
		return a->at_ps < b->at_ps;
	if (a->input != b->input)
		return a->input < b->input;
	return a->seq < b->seq;
}

static void grow(struct rn_transit_list *list)
{
	uint32_t room = list->room ? list->room * 2 : 16;
	struct rn_transit *item = rn_calloc(room, sizeof(*item));

	for (uint32_t i = 0; i < list->count; i++)
		item[i] = *rn_transit_at(list, i);
	free(list->item);
	list->item = item;
	list->room = room;
	list->head = 0;
}

void rn_transit_insert(struct rn_transit_list *list, const struct rn_transit *transit)
{
	uint32_t i = list->count;

	if (list->count == list->room)
		grow(list);
	list->count++;
	for (; i > 0 && is_before(transit, rn_transit_at(list, i - 1)); i--)
		*rn_transit_at(list, i) = *rn_transit_at(list, i - 1);
	*rn_transit_at(list, i) = *transit;
}

void rn_transit_fini(struct rn_transit_list *list, struct rn_packets *packets)
{
	for (uint32_t i = 0; packets && i < list->count; i++)
		rn_packet_put(packets, rn_transit_at(list, i)->frame.packet);
	free(list->item);
}
