/*
 * What is mapped in this process: /proc/self/maps, read once and walked line by line.
 */
#ifndef RN_PRELOAD_TSC_MAPS_H
#define RN_PRELOAD_TSC_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rn_map {
	uintptr_t start, end;
	uint64_t offset; /* in the file, bytes */
	uint64_t device, inode;
	int prot; /* PROT_ bits */
	bool is_shared;
	const char *path; /* "": anonymous; "[...]": the system's; ends at a newline */
};

struct rn_maps {
	char *text;
	size_t bytes, room, at;
};

/** Read the maps. False: they cannot be read. Free with rn_maps_fini(). */
bool rn_maps_read(struct rn_maps *maps);
void rn_maps_fini(struct rn_maps *maps);

/** From the first mapping on again. */
void rn_maps_rewind(struct rn_maps *maps);

/** The next mapping, lowest address first; false after the last. @map->path lives as long as @maps. */
bool rn_maps_next(struct rn_maps *maps, struct rn_map *map);

#endif
