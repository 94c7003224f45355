#include "programs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bar/time_page.h"
#include "base/mem.h"
#include "driver/uapi.h"
#include "install.h"

/*
 * Programs poll. The simulator, on which all of them wait, must not wait for the end of their time slices.
 */
#define PROGRAM_NICE 10

/* Put @first in front of the colon-separated list in @variable. */
static void prepend(const char *variable, const char *first)
{
	const char *old = getenv(variable);
	char *value = old && *old ? rn_asprintf("%s:%s", first, old) : rn_strdup(first);

	setenv(variable, value, 1);
	free(value);
}

/* Nobody who lives in virtual time reads what a program writes here. */
static void set_output(void)
{
	struct stat out = {0}, err = {0};
	char *text;

	fstat(STDOUT_FILENO, &out);
	fstat(STDERR_FILENO, &err);
	text = rn_asprintf("%llx:%llx %llx:%llx", (unsigned long long)out.st_dev,
			   (unsigned long long)out.st_ino, (unsigned long long)err.st_dev,
			   (unsigned long long)err.st_ino);
	setenv(RN_ENV_OUTPUT, text, 1);
	free(text);
}

bool rn_program_set_environment(const char *dir, unsigned host)
{
	const char *library_dir = rn_install_library_dir();
	char *text;

	if (!library_dir) {
		fprintf(stderr,
			"rnicsim: libibverbs.so.1 is not beside this executable (../lib)\n");
		return false;
	}
	prepend("LD_LIBRARY_PATH", library_dir);
	text = rn_asprintf("%s/librnicsim-preload.so", library_dir);
	prepend("LD_PRELOAD", text);
	free(text);
	text = rn_asprintf("%s/socket", dir);
	setenv(RN_ENV_SOCKET, text, 1);
	free(text);
	text = rn_asprintf("%u", host);
	setenv(RN_ENV_HOST, text, 1);
	free(text);
	set_output();
	return true;
}

static void redirect(int fd, int to)
{
	if (fd != to) {
		dup2(fd, to);
		close(fd);
	}
}

/* In the child: never returns. */
static void run_child(unsigned host, const char *command, const char *dir, int out, int err,
		      bool virtual_time)
{
	sigset_t none;
	int null = open("/dev/null", O_RDONLY);

	setpgid(0, 0);
	/* One that spins on memory would not find out that the run was killed. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (virtual_time)
		personality(ADDR_NO_RANDOMIZE);
	else if (nice(PROGRAM_NICE) == -1)
		errno = 0;
	if (null >= 0)
		redirect(null, STDIN_FILENO);
	if (out >= 0)
		redirect(out, STDOUT_FILENO);
	if (err >= 0)
		redirect(err, STDERR_FILENO);
	signal(SIGINT, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (rn_program_set_environment(dir, host))
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	fprintf(stderr, "rnicsim: cannot start: %s: %s\n", command, strerror(errno));
	_exit(127);
}

bool rn_program_start(struct rn_program *program, unsigned host, const char *command,
		      const char *dir, bool raw, bool virtual_time)
{
	int out[2] = {-1, -1}, err[2] = {-1, -1};

	memset(program, 0, sizeof(*program));
	program->host = host;
	program->command = command;
	program->pidfd = -1;
	if (!raw && (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)) {
		fprintf(stderr, "rnicsim: cannot make a pipe: %s\n", strerror(errno));
		return false;
	}
	fflush(NULL);
	program->pid = fork();
	if (program->pid == 0)
		run_child(host, command, dir, out[1], err[1], virtual_time);
	if (out[1] >= 0)
		close(out[1]);
	if (err[1] >= 0)
		close(err[1]);
	program->out[0] = out[0];
	program->out[1] = err[0];
	if (program->pid < 0) {
		fprintf(stderr, "rnicsim: cannot fork: %s\n", strerror(errno));
		return false;
	}
	setpgid(program->pid, program->pid);
	program->pidfd = (int)syscall(SYS_pidfd_open, program->pid, 0);
	if (program->pidfd < 0)
		fprintf(stderr, "rnicsim: cannot watch a program: %s\n", strerror(errno));
	return program->pidfd >= 0;
}

static FILE *stream_of(unsigned stream)
{
	return stream ? stderr : stdout;
}

static void print_line(struct rn_program *program, unsigned stream)
{
	fprintf(stream_of(stream), "[host%u] ", program->host);
	fwrite(program->line[stream], 1, program->line_bytes[stream], stream_of(stream));
	fputc('\n', stream_of(stream));
	program->line_bytes[stream] = 0;
}

static void split_lines(struct rn_program *program, unsigned stream, const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (text[i] != '\n')
			program->line[stream][program->line_bytes[stream]++] = text[i];
		if (text[i] == '\n' || program->line_bytes[stream] == sizeof(program->line[stream]))
			print_line(program, stream);
	}
	fflush(stream_of(stream));
}

static void close_stream(struct rn_program *program, unsigned stream)
{
	if (program->line_bytes[stream])
		print_line(program, stream);
	fflush(stream_of(stream));
	if (program->out[stream] >= 0)
		close(program->out[stream]);
	program->out[stream] = -1;
}

void rn_program_forward(struct rn_program *program, unsigned stream)
{
	char text[16384];
	ssize_t n = read(program->out[stream], text, sizeof(text));

	if (n > 0)
		split_lines(program, stream, text, (size_t)n);
	else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		close_stream(program, stream);
}

void rn_program_reap(struct rn_program *program)
{
	int status;

	if (waitpid(program->pid, &status, WNOHANG) != program->pid)
		return;
	program->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	close(program->pidfd);
	program->pidfd = -1;
}

void rn_program_finish(struct rn_program *program)
{
	for (unsigned stream = 0; stream < 2; stream++) {
		if (program->out[stream] < 0)
			continue;
		fcntl(program->out[stream], F_SETFL, O_NONBLOCK);
		for (unsigned i = 0; i < 64 && program->out[stream] >= 0; i++)
			rn_program_forward(program, stream);
		if (program->out[stream] >= 0)
			close_stream(program, stream);
	}
}
