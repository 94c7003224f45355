#include "preload/tsc/maps.h"

#include <fcntl.h>
#include <string.h>

#include "preload/tsc/raw.h"

#define ROOM_BYTES ((size_t)16 << 20)

bool rn_maps_read(struct rn_maps *maps)
{
	const long fd = rn_raw_call(SYS_openat, AT_FDCWD, (long)"/proc/self/maps",
				    O_RDONLY | O_CLOEXEC, 0, 0, 0);
	long got = 0;

	*maps = (struct rn_maps){.room = ROOM_BYTES};
	if (fd < 0)
		return false;
	maps->text = rn_raw_alloc(maps->room);
	while (maps->text && maps->bytes + 1 < maps->room) {
		got = rn_raw_call(SYS_read, fd, (long)(maps->text + maps->bytes),
				  (long)(maps->room - 1 - maps->bytes), 0, 0, 0);
		if (got <= 0)
			break;
		maps->bytes += (size_t)got;
	}
	rn_raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
	if (maps->text && !got && maps->bytes)
		return true;
	rn_maps_fini(maps);
	return false;
}

void rn_maps_fini(struct rn_maps *maps)
{
	rn_raw_free(maps->text, maps->room);
	maps->text = NULL;
}

void rn_maps_rewind(struct rn_maps *maps)
{
	maps->at = 0;
}

static uint64_t number(const char **text, unsigned base)
{
	uint64_t value = 0;

	for (;; (*text)++) {
		const char digit = **text;

		if (digit >= '0' && digit <= '9')
			value = value * base + (uint64_t)(digit - '0');
		else if (base == 16 && digit >= 'a' && digit <= 'f')
			value = value * base + (uint64_t)(digit - 'a' + 10);
		else
			return value;
	}
}

/* "555555554000-555555556000 r-xp 00002000 fe:01 1234    /usr/bin/true" */
bool rn_maps_next(struct rn_maps *maps, struct rn_map *map)
{
	const char *text = maps->text + maps->at;
	const char *end = maps->text ? memchr(text, '\n', maps->bytes - maps->at) : NULL;

	if (!end)
		return false;
	maps->at = (size_t)(end + 1 - maps->text);
	map->start = number(&text, 16);
	text++;
	map->end = number(&text, 16);
	text++;
	map->prot = (text[0] == 'r' ? PROT_READ : 0) | (text[1] == 'w' ? PROT_WRITE : 0) |
		    (text[2] == 'x' ? PROT_EXEC : 0);
	map->is_shared = text[3] == 's';
	text += 5;
	map->offset = number(&text, 16);
	text++;
	map->device = number(&text, 16) << 32;
	text++;
	map->device |= number(&text, 16);
	text++;
	map->inode = number(&text, 10);
	while (*text == ' ')
		text++;
	map->path = text;
	return true;
}
