/* The fake simulator as a process. */
#include "fake_sim.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "fake_internal.h"
#include "verbs/conn.h"

static pid_t server;
static char folder[64], path[96];

static void accept_client(struct fake_sim *sim)
{
	const int fd = accept(sim->listener, NULL, NULL);

	for (unsigned i = 0; i < FAKE_CLIENTS; i++) {
		if (sim->client[i].fd < 0) {
			sim->client[i].fd = fd;
			return;
		}
	}
	close(fd);
}

static void serve_sockets(struct fake_sim *sim, int timeout_ms)
{
	struct pollfd pfd[FAKE_CLIENTS + 1] = {{.fd = sim->listener, .events = POLLIN}};

	for (unsigned i = 0; i < FAKE_CLIENTS; i++)
		pfd[i + 1] = (struct pollfd){.fd = sim->client[i].fd, .events = POLLIN};
	if (poll(pfd, FAKE_CLIENTS + 1, timeout_ms) <= 0)
		return;
	for (unsigned i = 0; i < FAKE_CLIENTS; i++)
		if (pfd[i + 1].revents && !fake_serve(sim, &sim->client[i]))
			fake_drop(sim, &sim->client[i]);
	if (pfd[0].revents)
		accept_client(sim);
}

static _Noreturn void serve(int listener, const struct fake_sim_options *options)
{
	static struct fake_sim sim;
	unsigned idle = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sim.options = *options;
	sim.listener = listener;
	for (unsigned i = 0; i < FAKE_CLIENTS; i++)
		sim.client[i].fd = sim.client[i].async_fd = -1;
	for (;;) {
		idle = fake_nic_run(&sim) ? 0 : idle + 1;
		serve_sockets(&sim, idle > 1000 ? 1 : 0);
	}
}

void fake_sim_start(const struct fake_sim_options *options)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(folder, "/tmp/rnicsim-test-XXXXXX");
	RN_ASSERT(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/socket", folder);
	strcpy(addr.sun_path, path);
	RN_ASSERT(bind(listener, (const struct sockaddr *)&addr, sizeof(addr)) == 0);
	RN_ASSERT(listen(listener, 8) == 0);
	server = fork();
	if (server == 0)
		serve(listener, options);
	close(listener);
	setenv(RN_ENV_SOCKET, path, 1);
	setenv(RN_ENV_HOST, "0", 1);
}

void fake_sim_kill(void)
{
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	server = 0;
}

void fake_sim_stop(void)
{
	if (server)
		fake_sim_kill();
	unlink(path);
	rmdir(folder);
	unsetenv(RN_ENV_SOCKET);
}

static uint32_t back_door(uint32_t op, const void *addr, uint32_t value)
{
	struct rn_conn *conn = rn_conn_get();
	struct rn_uapi_pin req = {.req.op = op, .va = (uint64_t)(uintptr_t)addr, .pages = value};
	struct rn_uapi_rsp rsp;

	RN_ASSERT(conn);
	RN_ASSERT(rn_conn_call(conn, &req, sizeof(req), &rsp, sizeof(rsp)) == 0);
	rn_conn_put(conn);
	return rsp.handle;
}

uint8_t fake_sim_peek(const void *addr)
{
	return (uint8_t)back_door(FAKE_OP_PEEK, addr, 0);
}

void fake_sim_poke(const void *addr, uint8_t value)
{
	back_door(FAKE_OP_POKE, addr, value);
}

unsigned fake_sim_pinned_pages(void)
{
	return back_door(FAKE_OP_PINNED, NULL, 0);
}
