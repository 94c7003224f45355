/*
 * without NAME=WHAT[,NAME=WHAT...] COMMAND [ARGUMENT...]: runs COMMAND, and all that it starts, on a machine that lacks something: a
 * seccomp filter, as those of container runtimes, answers the system call NAME with the error WHAT (EPERM, ENOSYS, ..., or
 * 0: it pretends to have worked). NAMEs that are no system call: "tsc", prctl(PR_SET_TSC); "sigtrap", a handler of SIGTRAP.
 */
#include <errno.h>
#include <linux/prctl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	int error;
} errors[] = {
	{"0", 0},	    {"EPERM", EPERM},	{"ENOSYS", ENOSYS}, {"EACCES", EACCES},
	{"EAGAIN", EAGAIN}, {"ENOMEM", ENOMEM}, {"EINVAL", EINVAL},
};

/* Calls of which only those with a certain first argument are meant. */
static const struct {
	const char *name, *call;
	uint64_t argument;
} special[] = {
	{"tsc", "prctl", PR_SET_TSC},
	{"sigtrap", "rt_sigaction", SIGTRAP},
};

static void die(const char *what, const char *text)
{
	fprintf(stderr, "without: %s: %s\n", text, what);
	exit(2);
}

static int error_of(const char *name)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (strcmp(errors[i].name, name) == 0)
			return errors[i].error;
	die("no error that is known here", name);
	return 0;
}

static void refuse(scmp_filter_ctx filter, const char *name, int error)
{
	const uint32_t action = SCMP_ACT_ERRNO((uint16_t)error);
	int call, result = -1;

	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
		if (strcmp(special[i].name, name) == 0) {
			call = seccomp_syscall_resolve_name(special[i].call);
			result = seccomp_rule_add(filter, action, call, 1,
						  SCMP_A0(SCMP_CMP_EQ, special[i].argument));
			if (result != 0)
				die(strerror(-result), name);
			return;
		}
	call = seccomp_syscall_resolve_name(name);
	if (call == __NR_SCMP_ERROR)
		die("no system call", name);
	result = seccomp_rule_add(filter, action, call, 0);
	if (result != 0)
		die(strerror(-result), name);
}

int main(int argc, char **argv)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	char *rest, *one, *equals;

	if (argc < 3 || !filter)
		die("usage: without NAME=ERROR[,...] COMMAND...", argv[0]);
	rest = argv[1];
	while ((one = strsep(&rest, ","))) {
		equals = strchr(one, '=');
		if (!equals)
			die("not NAME=ERROR", one);
		*equals = 0;
		refuse(filter, one, error_of(equals + 1));
	}
	if (seccomp_load(filter) != 0)
		die("the filter is refused", argv[1]);
	seccomp_release(filter);
	execvp(argv[2], argv + 2);
	die(strerror(errno), argv[2]);
}
