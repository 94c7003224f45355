#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/bits.h"

static const int ending[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP};

static bool is_ignored(int signo)
{
	struct sigaction action;

	return sigaction(signo, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

int rn_signals_open(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (size_t i = 0; i < RN_ARRAY_LEN(ending); i++)
		if (ending[i] != SIGHUP || !is_ignored(SIGHUP))
			sigaddset(&set, ending[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		fprintf(stderr, "rnicsim: cannot listen to signals: %s\n", strerror(errno));
	return fd;
}

int rn_signals_take(int fd)
{
	struct signalfd_siginfo info;

	return read(fd, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}

void rn_signals_reset(void)
{
	sigset_t none;

	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}
