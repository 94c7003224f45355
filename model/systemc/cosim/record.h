/*
 * What passes at a unit's boundary, written as text: the stimulus that a stand-alone bench replays, and what the unit
 * answered. docs/rtl.md describes the lines.
 */
#ifndef RN_SYSTEMC_COSIM_RECORD_H
#define RN_SYSTEMC_COSIM_RECORD_H

#include <stdint.h>

struct rn_cosim_recorder;
struct rn_cosim_unit;
struct rn_unit_site;

/** NULL with *@message as rn_output_open(). */
struct rn_cosim_recorder *rn_cosim_recorder_new(const char *path, char **message);

/** The lines that say what unit this is. */
void rn_cosim_recorder_begin(struct rn_cosim_recorder *recorder, const struct rn_cosim_unit *unit,
			     const struct rn_unit_site *site);

/** Returns 0 or an errno with *@message as rn_output_close(). */
int rn_cosim_recorder_free(struct rn_cosim_recorder *recorder, char **message);

/** What the ports show, and what was pushed, in @cycle. @recorder NULL: nothing. */
void rn_cosim_record(struct rn_cosim_recorder *recorder, struct rn_cosim_unit *unit,
		     uint64_t cycle);

#endif
