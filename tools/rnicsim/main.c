/*
 * The rnicsim command: sub-commands, --help, --version.
 */
#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"
#include "commands.h"
#include "exit_status.h"

const char *argp_program_version = "rnicsim " RN_VERSION;

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{"run", rn_run_command, "run programs on simulated hosts, report"},
	{"serve", rn_serve_command, "simulate until Ctrl-C; programs join with exec"},
	{"exec", rn_exec_command, "run one program on a host of a running serve"},
	{"config", rn_config_command, "check or show a configuration"},
	{"doctor", rn_doctor_command,
	 "try what a run needs of this machine, and say what does not work"},
};

static void print_help(FILE *out)
{
	fprintf(out,
		"Usage: rnicsim COMMAND [OPTION...]\n"
		"A cycle-level simulator of an RDMA NIC that unmodified verbs programs drive.\n\n");
	for (size_t i = 0; i < RN_ARRAY_LEN(commands); i++)
		fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].help);
	fprintf(out, "\n`rnicsim COMMAND --help` tells more; --version prints the version.\n"
		     "Example: rnicsim run 'ib_write_bw' 'ib_write_bw localhost'\n");
}

/*
 * A full disk behind stdout is a failure too. All is written here at once (main() makes the buffer), so that errno is that of
 * the failure.
 */
static int finish(int status)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	fprintf(stderr, "rnicsim: standard output: %s\n", strerror(errno ? errno : EIO));
	return status ? status : RN_EXIT_USAGE;
}

int main(int argc, char **argv)
{
	static char buffer[1u << 20];

	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	/* A file that must not grow any more is an error where it is written. */
	signal(SIGXFSZ, SIG_IGN);
	if (argc < 2) {
		print_help(stderr);
		return RN_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-?") == 0 ||
	    strcmp(argv[1], "help") == 0) {
		print_help(stdout);
		return finish(0);
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		printf("%s\n", argp_program_version);
		return finish(0);
	}
	for (size_t i = 0; i < RN_ARRAY_LEN(commands); i++) {
		if (strcmp(argv[1], commands[i].name) != 0)
			continue;
		argp_err_exit_status = RN_EXIT_USAGE;
		argv[1] = rn_asprintf("rnicsim %s", commands[i].name);
		return finish(commands[i].run(argc - 1, argv + 1));
	}
	fprintf(stderr, "rnicsim: %s: no such command\n\n", argv[1]);
	print_help(stderr);
	return RN_EXIT_USAGE;
}
