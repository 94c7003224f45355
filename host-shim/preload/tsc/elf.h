/*
 * What the file of a mapped object says about where its functions are: .eh_frame through its sorted index, and symbols.
 * The file is read, not its image in memory; nothing in it is trusted.
 */
#ifndef RN_PRELOAD_TSC_ELF_H
#define RN_PRELOAD_TSC_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/tsc/maps.h"

struct rn_elf {
	const uint8_t *file;
	size_t bytes;
	uintptr_t bias; /* address in memory less address in the file */
};

/* Addresses in memory. */
struct rn_function {
	uintptr_t start, end;
	bool has_landing_pads; /* entered by exceptions, at places that no jump names */
};

/** Open the file behind @map. False: it cannot be read, is another one by now, or is no object of this machine. */
bool rn_elf_open(struct rn_elf *elf, const struct rn_map *map);
void rn_elf_close(struct rn_elf *elf);

/** The function around @at. False: neither .eh_frame nor a symbol knows one. */
bool rn_elf_function(const struct rn_elf *elf, uintptr_t at, struct rn_function *function);

/** Call @take with the start of each function that is known. */
void rn_elf_each_start(const struct rn_elf *elf, void (*take)(void *arg, uintptr_t at), void *arg);

#endif
