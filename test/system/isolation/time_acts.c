/*
 * Lies about time: any bytes in the time page, any order of requests for it, clocks that run ahead or stand still, children
 * that are none, batons that are kept, and ends at any moment. A process that is in no run of virtual time is told so and
 * does nothing.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bar/time_page.h"
#include "hostile.h"

#define TURN_NS 30000000u
#define FLOOD 300

/* A connection, and the page that came through it. */
struct clock {
	struct raw raw;
	struct rn_rng *rng;
	struct rn_time_page *page;
};

static void spoil_request(struct rn_rng *rng, struct rn_uapi_attach_time *request)
{
	request->now_ps = one_in(rng, 2) ? 0 : nasty64(rng);
	if (one_in(rng, 2))
		request->tid = nasty(rng);
	if (one_in(rng, 8))
		mutate(rng, request, sizeof(*request), 0);
}

static bool send_request(struct clock *clock, bool lies)
{
	struct rn_uapi_attach_time request = {
		.req = {.op = RN_UAPI_ATTACH_TIME, .bytes = sizeof(request)},
		.version = RN_UAPI_VERSION,
		.host = clock->raw.host,
		.tid = (uint32_t)syscall(SYS_gettid),
	};

	if (lies)
		spoil_request(clock->rng, &request);
	return raw_send(&clock->raw, &request, sizeof(request));
}

/* The answer's errno, -1 when hung up; 0 with the page mapped. */
static int take_page(struct clock *clock)
{
	struct rn_uapi_rsp rsp = {.error = EIO};
	int fds[3] = {-1, -1, -1};
	void *memory;

	if (!raw_receive(&clock->raw, &rsp, sizeof(rsp), fds))
		return -1;
	if (fds[0] < 0)
		return rsp.error;
	memory = mmap(NULL, RN_TIME_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	for (unsigned n = 0; n < 3; n++)
		if (fds[n] >= 0)
			close(fds[n]);
	if (memory == MAP_FAILED)
		return EIO;
	clock->page = memory;
	tally(TALLY_PAGES);
	return rsp.error;
}

static void close_clock(struct clock *clock)
{
	if (clock->page)
		munmap(clock->page, RN_TIME_PAGE_BYTES);
	clock->page = NULL;
	raw_close(&clock->raw);
}

static bool open_clock(struct clock *clock, struct rn_rng *rng, uint32_t host)
{
	*clock = (struct clock){.rng = rng};
	if (!raw_connect(&clock->raw, rng, host))
		return false;
	if (send_request(clock, one_in(rng, 8)) && take_page(clock) == 0 && clock->page)
		return true;
	close_clock(clock);
	return false;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Give the baton back as a thread does, and wait for it, but not for long. */
static bool take_turn(struct rn_time_slot *slot, uint32_t on, uint64_t until_ps)
{
	const uint64_t end_ns = now_ns() + TURN_NS;

	slot->on = on;
	slot->until_ps = until_ps;
	slot->grid_ps = 0;
	atomic_store(&slot->state, RN_TIME_WAITING);
	if (atomic_load(&slot->watched))
		syscall(SYS_futex, &slot->state, FUTEX_WAKE, 1, NULL, NULL, 0);
	while (atomic_load(&slot->state) != RN_TIME_RUNNING) {
		if (now_ns() > end_ns)
			return false;
		sched_yield();
	}
	tally(TALLY_TURNS);
	return true;
}

static pid_t somebody(struct rn_rng *rng, const struct rn_time_page *page)
{
	switch (below(rng, 6)) {
	case 0:
		return getpid();
	case 1:
		return getppid();
	case 2:
		return 1;
	case 3:
		return page->simulator_pid;
	case 4:
		return getsid(0);
	default:
		return (pid_t)nasty(rng);
	}
}

static void spoil_slot(struct rn_rng *rng, struct rn_time_page *page, struct rn_time_slot *slot)
{
	slot->on = one_in(rng, 2) ? below(rng, 32) : nasty(rng);
	slot->pid = somebody(rng, page);
	if (one_in(rng, 2))
		slot->tid = one_in(rng, 2) ? (pid_t)syscall(SYS_gettid) : somebody(rng, page);
	slot->now_ps = one_in(rng, 2) ? slot->now_ps + below(rng, 1000000) : nasty64(rng);
	slot->until_ps = one_in(rng, 2) ? slot->now_ps : nasty64(rng);
	slot->grid_ps = one_in(rng, 2) ? 0 : nasty64(rng);
	slot->spins = nasty(rng);
	if (one_in(rng, 4))
		atomic_store(&slot->asleep, nasty(rng));
	atomic_store(&slot->state, one_in(rng, 8) ? nasty(rng) : below(rng, 4));
}

static void spoil_head(struct rn_rng *rng, struct rn_time_page *page)
{
	atomic_store(&page->acted, below(rng, 2));
	atomic_store(&page->signalled, one_in(rng, 3));
	atomic_store(&page->sockets, one_in(rng, 3));
	atomic_store(&page->examinable, one_in(rng, 4) ? nasty(rng) : below(rng, 2));
	atomic_store(&page->used, one_in(rng, 2) ? 1 + below(rng, 8) : nasty(rng));
}

void give_up_time(struct rn_rng *rng, uint32_t host)
{
	struct clock clock;

	if (!open_clock(&clock, rng, host))
		return;
	atomic_store(&clock.page->slot[0].state, RN_TIME_FREE);
	close_clock(&clock);
}

/* --- acts --- */

/* Any bytes, in all of the page or in one word. */
void act_time_noise(struct rn_rng *rng, uint32_t host)
{
	struct clock clock;
	uint32_t *word;

	if (!open_clock(&clock, rng, host))
		return;
	word = (uint32_t *)(void *)clock.page;
	for (unsigned n = 0; n < 200; n++) {
		if (one_in(rng, 20))
			for (size_t at = 0; at < RN_TIME_PAGE_BYTES / 4; at++)
				word[at] = nasty(rng);
		word[below(rng, RN_TIME_PAGE_BYTES / 4)] = nasty(rng);
		if (one_in(rng, 10))
			sched_yield();
	}
	close_clock(&clock);
}

/* Slots that look right, in states and with times that are not theirs to say. */
void act_time_states(struct rn_rng *rng, uint32_t host)
{
	struct clock clock;

	if (!open_clock(&clock, rng, host))
		return;
	for (unsigned n = 0; n < 300; n++) {
		struct rn_time_slot *slot = &clock.page->slot[below(rng, one_in(rng, 2) ? 2 : 8)];

		spoil_slot(rng, clock.page, slot);
		if (one_in(rng, 3))
			spoil_head(rng, clock.page);
		if (one_in(rng, 10))
			take_turn(slot, below(rng, 32), slot->now_ps + below(rng, 1000000));
	}
	close_clock(&clock);
}

/* Processes that are nobody's children, and children that do not join. */
void act_time_spawns(struct rn_rng *rng, uint32_t host)
{
	const pid_t child = fork();
	struct clock clock;

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			usleep(1000 + below(rng, 100000));
	}
	if (open_clock(&clock, rng, host)) {
		for (unsigned n = 0; n < 10; n++) {
			struct rn_time_slot *slot = &clock.page->slot[0];

			slot->pid = one_in(rng, 6) ? child : somebody(rng, clock.page);
			take_turn(slot, RN_TIME_ON_SPAWN, slot->now_ps + below(rng, 1000));
		}
		close_clock(&clock);
	}
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
}

/* Ask again and again, with the page and without it, while the simulator looks at what it says. */
void act_time_again(struct rn_rng *rng, uint32_t host)
{
	struct clock clock, again;

	if (!open_clock(&clock, rng, host))
		return;
	for (unsigned n = 0; n < 20; n++) {
		struct rn_time_slot *slot = &clock.page->slot[0];

		again = (struct clock){.rng = rng};
		if (!raw_connect(&again.raw, rng, host))
			break;
		take_turn(slot, 0, slot->now_ps + below(rng, 1000000));
		atomic_store(&clock.page->sockets, 1);
		if (one_in(rng, 2))
			munmap(clock.page, RN_TIME_PAGE_BYTES), clock.page = NULL;
		send_request(&again, false);
		if (clock.page)
			take_turn(slot, 0, 0);
		if (take_page(&again) == EBUSY)
			tally(TALLY_REFUSED);
		if (!clock.page)
			clock.page = again.page;
		else if (again.page)
			munmap(again.page, RN_TIME_PAGE_BYTES);
		raw_close(&again.raw);
		if (!clock.page)
			break;
	}
	close_clock(&clock);
}

/* Every request in every order on one connection. */
void act_time_orders(struct rn_rng *rng, uint32_t host)
{
	_Alignas(8) static char answer[RN_UAPI_MAX_BYTES];
	struct clock clock = {.rng = rng};
	struct rn_uapi_attach attach = {
		.req = {.op = RN_UAPI_ATTACH, .bytes = sizeof(attach)},
		.version = RN_UAPI_VERSION,
		.host = host,
	};
	struct rn_uapi_req query = {.op = RN_UAPI_QUERY_PORT, .bytes = sizeof(query), .handle = 1};

	if (!raw_connect(&clock.raw, rng, host))
		return;
	for (unsigned n = 0; n < 8 && !clock.raw.gone; n++) {
		const uint32_t request = below(rng, 5);

		if (request == 0)
			raw_send(&clock.raw, &attach, sizeof(attach));
		else if (request == 1)
			raw_send(&clock.raw, &query, sizeof(query));
		else if (request == 2 && one_in(rng, 4))
			raw_send(&clock.raw, answer, below(rng, 100));
		else
			send_request(&clock, request == 3);
		if (!one_in(rng, 4))
			raw_receive(&clock.raw, answer, sizeof(answer), NULL);
	}
	if (clock.raw.gone)
		tally(TALLY_HUNG_UP);
	raw_close(&clock.raw);
}

/* More questions than anybody reads answers to, with descriptors that nobody asked for. */
void act_time_flood(struct rn_rng *rng, uint32_t host)
{
	struct rn_uapi_attach_time request = {
		.req = {.op = RN_UAPI_ATTACH_TIME, .bytes = sizeof(request)},
		.version = RN_UAPI_VERSION,
		.host = one_in(rng, 2) ? host : nasty(rng),
	};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec part = {&request, sizeof(request)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	struct raw raw = {.fd = -1};
	struct cmsghdr *header;

	for (unsigned n = 0; n < FLOOD; n++) {
		if (n % 10 && !raw.gone) {
			if (sendmsg(raw.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
				raw.gone = true;
			continue;
		}
		if (n)
			raw_close(&raw);
		if (!raw_connect(&raw, rng, host))
			return;
		message.msg_control = one_in(rng, 2) ? control : NULL;
		message.msg_controllen = message.msg_control ? sizeof(control) : 0;
		header = (struct cmsghdr *)(void *)control;
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &raw.fd, sizeof(int));
	}
	raw_close(&raw);
}

/* A connection of one that has ended, or that knows nothing of what is asked in its name. */
void act_time_inherited(struct rn_rng *rng, uint32_t host)
{
	struct clock clock = {.rng = rng};
	pid_t child;

	if (!raw_connect(&clock.raw, rng, host))
		return;
	child = fork();
	if (child == 0) {
		if (one_in(rng, 2) && fork())
			_exit(0);
		send_request(&clock, false);
		take_page(&clock);
		if (clock.page)
			take_turn(&clock.page->slot[0], 0, 0);
		_exit(0);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
	raw_close(&clock.raw);
}

/* In the child: with the baton or without it, it goes in one of the ways there are. */
static void leave_somehow(struct rn_rng *rng, uint32_t host)
{
	struct clock clock;

	if (!open_clock(&clock, rng, host))
		_exit(0);
	atomic_store(&clock.page->examinable, below(rng, 2));
	if (!one_in(rng, 3))
		take_turn(&clock.page->slot[0], below(rng, 4), 0);
	if (one_in(rng, 3))
		usleep(below(rng, 300000));
	if (one_in(rng, 4))
		kill(getpid(), one_in(rng, 2) ? SIGSTOP : SIGKILL);
	if (one_in(rng, 4))
		close_clock(&clock);
	_exit(0);
}

void act_time_leaves(struct rn_rng *rng, uint32_t host)
{
	const pid_t child = fork();
	int status;

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		leave_somehow(rng, host);
	}
	if (child < 0)
		return;
	waitpid(child, &status, WUNTRACED);
	if (!WIFSTOPPED(status))
		return;
	usleep(below(rng, 100000));
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
}

/* Clocks that jump, and clocks that stand still however often the baton comes. */
void act_time_clocks(struct rn_rng *rng, uint32_t host)
{
	const bool jumps = one_in(rng, 2);
	struct clock clock;

	if (!open_clock(&clock, rng, host))
		return;
	for (unsigned n = 0; n < (jumps ? 30 : 300); n++) {
		struct rn_time_slot *slot = &clock.page->slot[0];

		if (jumps)
			slot->now_ps = nasty64(rng);
		atomic_store(&clock.page->acted, 1);
		if (!take_turn(slot, RN_TIME_ON_LOOK, jumps ? nasty64(rng) : 0))
			break;
	}
	close_clock(&clock);
}
