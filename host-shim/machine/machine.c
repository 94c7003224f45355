#include "machine/machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "machine/internal.h"

static const struct {
	struct rn_machine_row row;
	void (*probe)(struct rn_machine_finding *finding);
} rows[RN_MACHINE_FACILITIES] = {
	[RN_MACHINE_COUNTER_TRAP] =
		{{"counter_trap", "trap of the time stamp counter", RN_MACHINE_WANTED,
		  "reads of the counter (rdtsc) in code that is generated or hidden may go unseen"},
		 rn_probe_counter_trap},
	[RN_MACHINE_SINGLE_STEP] =
		{{"single_step", "single-stepping", RN_MACHINE_REPEATS,
		  "a thread that spins on memory is not proved to: the wall clock decides"},
		 rn_probe_single_step},
	[RN_MACHINE_FIXED_ADDRESSES] =
		{{"fixed_addresses", "fixed addresses", RN_MACHINE_REPEATS,
		  "programs have other addresses in each run, and what shows them differs"},
		 rn_probe_fixed_addresses},
	[RN_MACHINE_SEALED_MEMORY] = {{"sealed_memory", "sealed memory files", RN_MACHINE_NEEDED,
				       "programs and the simulator can share no memory"},
				      rn_probe_sealed_memory},
	[RN_MACHINE_PROCESS_MEMORY] =
		{{"process_memory", "reading another process's memory", RN_MACHINE_WANTED,
		  "memory that cannot be exchanged (shared, or of a file) cannot be registered"},
		 rn_probe_process_memory},
	[RN_MACHINE_PTRACE] = {{"ptrace", "tracing", RN_MACHINE_WANTED,
				"no strace and no debugger inside a run"},
			       rn_probe_ptrace},
	[RN_MACHINE_PROCESS_WATCH] = {{"process_watch", "watching processes", RN_MACHINE_NEEDED,
				       "the end of a program is not seen"},
				      rn_probe_process_watch},
	[RN_MACHINE_LOOPBACK] = {{"loopback", "loopback network", RN_MACHINE_NEEDED,
				  "hosts have no addresses"},
				 rn_probe_loopback},
	[RN_MACHINE_PORTS] = {{"ports", "ports on the loopback network", RN_MACHINE_WANTED,
			       "programs cannot talk to each other over TCP"},
			      rn_probe_ports},
	[RN_MACHINE_DESCRIPTORS] = {{"descriptors", "open files", RN_MACHINE_NEEDED,
				     "the simulator cannot serve two hosts' programs"},
				    rn_probe_descriptors},
	[RN_MACHINE_LOCKED_MEMORY] =
		{{"locked_memory", "locked memory", RN_MACHINE_WANTED,
		  "programs that lock their buffers themselves fail; registration needs none"},
		 rn_probe_locked_memory},
	[RN_MACHINE_ADDRESS_SPACE] = {{"address_space", "address space", RN_MACHINE_NEEDED,
				       "there is no room for the memory of the hosts"},
				      rn_probe_address_space},
	[RN_MACHINE_RUN_FOLDER] = {{"run_folder", "folder for sockets", RN_MACHINE_NEEDED,
				    "programs cannot find the simulator"},
				   rn_probe_run_folder},
	[RN_MACHINE_TEMPORARY_SPACE] = {{"temporary_space", "space in the temporary folder",
					 RN_MACHINE_WANTED, "waveforms cannot be written"},
					rn_probe_temporary_space},
	[RN_MACHINE_SHARED_MEMORY] = {{"shared_memory", "POSIX shared memory (/dev/shm)",
				       RN_MACHINE_WANTED,
				       "programs that use shm_open() fail; rnicsim does not"},
				      rn_probe_shared_memory},
	[RN_MACHINE_PROCESSORS] =
		{{"processors", "two processors", RN_MACHINE_WANTED,
		  "programs and simulator take turns: results are the same, later"},
		 rn_probe_processors},
};

bool rn_machine_refuse(struct rn_machine_finding *finding, const char *what, int error)
{
	finding->works = false;
	snprintf(finding->detail, sizeof(finding->detail), "%s%s%s", what, error ? ": " : "",
		 error ? strerror(error) : "");
	return false;
}

void rn_machine_detail(struct rn_machine_finding *finding, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(finding->detail, sizeof(finding->detail), format, args);
	va_end(args);
}

const struct rn_machine_row *rn_machine_row(enum rn_machine_facility facility)
{
	return &rows[facility].row;
}

void rn_machine_probe(enum rn_machine_facility facility, struct rn_machine_finding *finding)
{
	*finding = (struct rn_machine_finding){.works = false};
	rows[facility].probe(finding);
}

bool rn_machine_has(enum rn_machine_facility facility)
{
	struct rn_machine_finding finding;

	rn_machine_probe(facility, &finding);
	return finding.works;
}

unsigned rn_machine_rows_of(enum rn_machine_need need)
{
	unsigned bits = 0;

	for (unsigned i = 0; i < RN_MACHINE_FACILITIES; i++)
		if (rows[i].row.need == need)
			bits |= 1u << i;
	return bits;
}

char *rn_machine_lacking(unsigned facilities)
{
	struct rn_machine_finding finding;
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = NULL;

	for (unsigned i = 0; i < RN_MACHINE_FACILITIES; i++) {
		if (!(facilities >> i & 1))
			continue;
		rn_machine_probe((enum rn_machine_facility)i, &finding);
		if (finding.works)
			continue;
		if (!out && !(out = open_memstream(&text, &bytes)))
			return rn_strdup("memory");
		fprintf(out, "%s%s (%s)", ftell(out) > 0 ? ", " : "", rows[i].row.name,
			finding.detail);
	}
	if (out)
		fclose(out);
	return text;
}
