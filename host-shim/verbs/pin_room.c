/*
 * Counting takes up to 16 ms, so it is done after many changes only: what the program maps in between is not seen. A quarter
 * of the limit is left to it.
 */
#include "verbs/pin_room.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bits.h"
#include "verbs/maps.h"

#define DEFAULT_LIMIT 65530u
#define MAPS_PER_EXCHANGE 2u /* a run in the middle of a mapping leaves three */
#define SPARE_MAPS 256u
/* Where judging a page means reading the whole address map, it stays short. */
#define SLOW_MAPS_MAX 2048u
#define RECOUNT_AFTER_ADDED 4096u
#define RECOUNT_AFTER_REFUSED 256u

static size_t read_kernel_limit(void)
{
	char text[32] = {0};
	const int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
	size_t limit = DEFAULT_LIMIT;

	if (fd < 0)
		return limit;
	if (read(fd, text, sizeof(text) - 1) > 0)
		limit = strtoul(text, NULL, 10);
	close(fd);
	return limit;
}

static void count(struct rn_pin_room *room)
{
	room->counted = rn_maps_count();
	room->added = 0;
	room->refused = 0;
}

void rn_pin_room_init(struct rn_pin_room *room)
{
	count(room);
	room->limit = read_kernel_limit() / 4 * 3;
	if (!rn_maps_is_quick())
		room->limit = rn_min_u64(room->limit, room->counted + SLOW_MAPS_MAX);
}

static bool has(const struct rn_pin_room *room, unsigned exchanges)
{
	return room->counted + room->added + (size_t)exchanges * MAPS_PER_EXCHANGE + SPARE_MAPS <
	       room->limit;
}

bool rn_pin_room_has(struct rn_pin_room *room, unsigned exchanges)
{
	if (room->added >= RECOUNT_AFTER_ADDED)
		count(room);
	if (has(room, exchanges))
		return true;
	if (room->added + ++room->refused < RECOUNT_AFTER_REFUSED)
		return false;
	count(room);
	return has(room, exchanges);
}

void rn_pin_room_take(struct rn_pin_room *room)
{
	room->added += MAPS_PER_EXCHANGE;
}
