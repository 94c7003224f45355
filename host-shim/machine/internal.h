/*
 * The probes behind the table of machine.c. Each fills the finding, whose works is false at first.
 */
#ifndef RN_MACHINE_INTERNAL_H
#define RN_MACHINE_INTERNAL_H

#include "machine/machine.h"

/** It does not work, for @what and the errno @error (0: none). Returns false. */
bool rn_machine_refuse(struct rn_machine_finding *finding, const char *what, int error);

/** What was found, by printf. */
void rn_machine_detail(struct rn_machine_finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* processor.c */
void rn_probe_counter_trap(struct rn_machine_finding *finding);
void rn_probe_single_step(struct rn_machine_finding *finding);
void rn_probe_processors(struct rn_machine_finding *finding);

/* processes.c */
void rn_probe_fixed_addresses(struct rn_machine_finding *finding);
void rn_probe_process_memory(struct rn_machine_finding *finding);
void rn_probe_ptrace(struct rn_machine_finding *finding);
void rn_probe_process_watch(struct rn_machine_finding *finding);

/* memory.c */
void rn_probe_sealed_memory(struct rn_machine_finding *finding);
void rn_probe_locked_memory(struct rn_machine_finding *finding);
void rn_probe_address_space(struct rn_machine_finding *finding);
void rn_probe_shared_memory(struct rn_machine_finding *finding);

/* sockets.c */
void rn_probe_loopback(struct rn_machine_finding *finding);
void rn_probe_ports(struct rn_machine_finding *finding);

/* files.c */
void rn_probe_descriptors(struct rn_machine_finding *finding);
void rn_probe_run_folder(struct rn_machine_finding *finding);
void rn_probe_temporary_space(struct rn_machine_finding *finding);

#endif
