/*
 * pretend ERRNO CALL [ARGUMENT] -- COMMAND...: runs COMMAND, and all that it starts, on a machine where the system call
 * CALL (with ARGUMENT as its first) does nothing and answers ERRNO: 0 pretends that it has worked, as some sandboxes do.
 */
#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int end(const char *what)
{
	fprintf(stderr, "pretend: %s\n", what);
	return 2;
}

int main(int argc, char **argv)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	const int has_argument = argc > 3 && strcmp(argv[3], "--") != 0;
	char **command = argv + 4 + has_argument;
	int call;

	if (!filter || argc < 5 + has_argument)
		return end("ERRNO CALL [ARGUMENT] -- COMMAND...");
	call = seccomp_syscall_resolve_name(argv[2]);
	if (call == __NR_SCMP_ERROR)
		return end("there is no such call");
	if (seccomp_rule_add(filter, SCMP_ACT_ERRNO((uint16_t)atoi(argv[1])), call,
			     (unsigned)has_argument,
			     SCMP_A0(SCMP_CMP_EQ, has_argument ? strtoull(argv[3], NULL, 0) : 0)) ||
	    seccomp_load(filter))
		return end("the filter is refused");
	seccomp_release(filter);
	execvp(command[0], command);
	return end(strerror(errno));
}
