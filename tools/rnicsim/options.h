/*
 * Options that run and serve share: the configuration and what is recorded.
 */
#ifndef RN_RNICSIM_OPTIONS_H
#define RN_RNICSIM_OPTIONS_H

#include <argp.h>
#include <stdbool.h>

#include "bar/time_page.h"
#include "system/system.h"
#include "systemc/cosim/cosim.h"

struct rn_options {
	const char *config_path; /* NULL: the default scenario */
	const char **set;	 /* NULL-terminated; owned */
	unsigned sets;
	char **owned; /* texts made of options; NULL-terminated */
	unsigned owneds;
	unsigned hosts; /* of the default scenario when no configuration is given; 0: as it says */
	struct rn_system_options record;
	struct rn_cosim_options cosim;
	struct rn_cosim_record *unit_record; /* cosim.record; owned */
	const char **plusarg;		     /* cosim.plusargs; owned */
	const char *fst_path;		     /* waveform of all fifos; NULL none */
	const char *report_path;
	bool wqe_timeline;	   /* stamps in the report */
	double warmup_ms;	   /* simulated time cut off the statistics */
	bool quiet;		   /* no summary */
	bool free_run;		   /* programs read the wall clock, not the simulated one */
	enum rn_tsc_mode tsc_mode; /* how reads of the processor's counter are caught */
	bool is_open;		   /* programs join at any time: nobody tells when they start */
	char *lacking; /* what a repeatable run needs and this machine lacks; NULL nothing; owned */
	int start_fd; /* of the simulator in virtual time: where the supervisor says what it starts; -1 none */
};

/** The argp children that parse them: what is simulated, and what is recorded. Their input is a struct rn_options *. */
extern const struct argp rn_options_scenario_argp;
extern const struct argp rn_options_record_argp;

void rn_options_fini(struct rn_options *options);

/**
 * Load and compose the configuration that @options name and read the scenario. Mistakes are printed to stderr and
 * NULL is returned. *@config stays valid for show and hash; the caller frees both.
 */
struct rn_scenario *rn_options_load(const struct rn_options *options, struct rn_config **config);

#endif
