/*
 * The hand-made faults of a block's RTL: the heads of its list (tools/cosim/seed_faults), for those who try them all.
 */
#ifndef RN_TEST_COSIM_COMMON_FAULTS_H
#define RN_TEST_COSIM_COMMON_FAULTS_H

#define COSIM_FAULTS 64 /* of a block, at most */

struct cosim_fault {
	unsigned number;
	char what[160];
};

struct cosim_faults {
	struct cosim_fault fault[COSIM_FAULTS];
	unsigned count;
};

/** The faults of list @path; one that cannot be read is an assertion's. */
void cosim_faults_load(struct cosim_faults *faults, const char *path);

#endif
