/*
 * A breakpoint costs a signal and a period of the loop on a copy of the registers, a few microseconds; to be asked
 * costs what the thread spins till then, on the processor that the others wait for. One that does not pay is
 * taken out for good.
 */
#include "preload/spin_plant.h"

#include <string.h>
#include <sys/mman.h>

#include "preload/spin_loop.h"
#include "preload/tsc/maps.h"
#include "preload/tsc/patch.h"
#include "preload/virtual.h"

#define PLANTS_MAX 16
#define BREAKPOINT 0xcc
#define PAGE_BYTES 4096u
/* A breakpoint that is passed more often than so, without a wait, is in the way. */
#define PASSES_FREE 256u
#define PASSES_A_WAIT 16u

static struct plant {
	uintptr_t ip;
	uint8_t original;
	bool is_in; /* false: taken out, not to come back */
	unsigned waits, passes;
} plants[PLANTS_MAX];
static unsigned plant_count;

static struct plant *find(uintptr_t ip)
{
	for (unsigned i = 0; i < plant_count; i++)
		if (plants[i].ip == ip)
			return &plants[i];
	return NULL;
}

/* What the program has there. Not into the next page, which may not be mapped: an instruction that goes on there is not known. */
static unsigned read_code(uintptr_t ip, uint8_t *code, unsigned bytes)
{
	const unsigned rest = PAGE_BYTES - (unsigned)(ip % PAGE_BYTES);

	if (bytes > rest)
		bytes = rest;
	memcpy(code, (const void *)ip, bytes);
	for (unsigned i = 0; i < plant_count; i++)
		if (plants[i].is_in && plants[i].ip >= ip && plants[i].ip < ip + bytes)
			code[plants[i].ip - ip] = plants[i].original;
	return bytes;
}

/* Code of a file that nobody writes: what is made at run time may be made anew. */
static bool find_code(uintptr_t ip, struct rn_map *map)
{
	struct rn_maps maps;
	bool found = false;

	if (!rn_maps_read(&maps))
		return false;
	while (!found && rn_maps_next(&maps, map))
		found = ip >= map->start && ip < map->end;
	found = found && !map->is_shared && !(map->prot & PROT_WRITE) && map->inode;
	rn_maps_fini(&maps);
	return found;
}

static bool write_byte(uintptr_t ip, uint8_t byte)
{
	const uintptr_t page = ip - ip % PAGE_BYTES;
	struct rn_map map;

	if (!find_code(ip, &map) || !rn_tsc_open_code(page, page + PAGE_BYTES, map.prot))
		return false;
	__atomic_store_n((uint8_t *)ip, byte, __ATOMIC_SEQ_CST);
	rn_tsc_close_code(page, page + PAGE_BYTES, map.prot);
	return true;
}

static void take_out(struct plant *plant)
{
	if (write_byte(plant->ip, plant->original))
		plant->is_in = false;
}

bool rn_spin_plant(uintptr_t ip)
{
	struct plant *plant = find(ip);

	if (plant)
		return plant->is_in;
	if (plant_count == PLANTS_MAX || rn_virtual_page()->tsc_mode == RN_TSC_MODE_TRAP)
		return false;
	plant = &plants[plant_count];
	*plant = (struct plant){.ip = ip, .original = *(const uint8_t *)ip};
	plant->is_in = write_byte(ip, BREAKPOINT);
	plant_count++;
	return plant->is_in;
}

bool rn_spin_is_planted(const siginfo_t *info, const ucontext_t *context)
{
	const struct plant *plant = find((uintptr_t)context->uc_mcontext.gregs[REG_RIP] - 1);

	return info->si_code == SI_KERNEL && plant && plant->is_in;
}

/* True: it goes on at the breakpoint, which must not be there then. */
static bool is_in_the_way(const struct plant *plant, enum rn_loop_end end, greg_t ip)
{
	return end == RN_LOOP_CHANGED || (uintptr_t)ip == plant->ip ||
	       plant->passes > PASSES_FREE + PASSES_A_WAIT * plant->waits;
}

void rn_spin_meet(ucontext_t *context)
{
	greg_t *regs = context->uc_mcontext.gregs;
	struct plant *plant = find((uintptr_t)--regs[REG_RIP]);
	enum rn_loop_end end;

	for (;;) {
		end = rn_virtual_is_running() ? rn_loop_run(regs, read_code) : RN_LOOP_LEFT;
		if (end != RN_LOOP_SAME)
			break;
		plant->waits++;
		rn_virtual_wait_message(true);
	}
	plant->passes++;
	if (is_in_the_way(plant, end, regs[REG_RIP]))
		take_out(plant);
}
