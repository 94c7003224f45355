/*
 * What this machine lets a run do. Each facility is probed by using it, here and now: kernels, containers and sandboxes
 * refuse some, and some only pretend.
 */
#ifndef RN_MACHINE_MACHINE_H
#define RN_MACHINE_MACHINE_H

#include <stdbool.h>

enum rn_machine_facility {
	RN_MACHINE_COUNTER_TRAP,
	RN_MACHINE_SINGLE_STEP,
	RN_MACHINE_FIXED_ADDRESSES,
	RN_MACHINE_SEALED_MEMORY,
	RN_MACHINE_PROCESS_MEMORY,
	RN_MACHINE_PTRACE,
	RN_MACHINE_PROCESS_WATCH,
	RN_MACHINE_LOOPBACK,
	RN_MACHINE_PORTS,
	RN_MACHINE_DESCRIPTORS,
	RN_MACHINE_LOCKED_MEMORY,
	RN_MACHINE_ADDRESS_SPACE,
	RN_MACHINE_RUN_FOLDER,
	RN_MACHINE_TEMPORARY_SPACE,
	RN_MACHINE_SHARED_MEMORY,
	RN_MACHINE_PROCESSORS,
	RN_MACHINE_FACILITIES
};

enum rn_machine_need {
	RN_MACHINE_NEEDED,  /* without it nothing runs */
	RN_MACHINE_REPEATS, /* that another run gives the same rests on it */
	RN_MACHINE_WANTED   /* without it something is lost */
};

struct rn_machine_row {
	const char *key; /* of --json: one word */
	const char *name;
	enum rn_machine_need need;
	const char *lost; /* what does not work without it */
};

struct rn_machine_finding {
	bool works;
	char detail[160]; /* what was found: a figure, or the reason of a failure */
};

const struct rn_machine_row *rn_machine_row(enum rn_machine_facility facility);

/** Use @facility. May fork; signal handlers and limits are afterwards what they were. Not beside other threads. */
void rn_machine_probe(enum rn_machine_facility facility, struct rn_machine_finding *finding);

/** rn_machine_probe()'s verdict alone. */
bool rn_machine_has(enum rn_machine_facility facility);

/**
 * In one line what @facilities (a bit for each) lack here: "fixed addresses (Operation not permitted), ...". NULL: nothing. The
 * caller free()s it.
 */
char *rn_machine_lacking(unsigned facilities);

/**
 * The folder in which runs make theirs: $XDG_RUNTIME_DIR where it is absolute, can be written to, leaves room for a socket's path,
 * and can be given to the loader; else /tmp. @is_relative: whether it was left out for the first reason; may be NULL.
 */
const char *rn_machine_runtime_folder(bool *is_relative);

/** Whether LD_PRELOAD and LD_LIBRARY_PATH can have @path in them: the loader ends names at spaces, colons and semicolons. */
bool rn_machine_is_loadable(const char *path);

/** All rows of a need, as bits. */
unsigned rn_machine_rows_of(enum rn_machine_need need);

#endif
