#include "virtual_process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"

#define NS_PER_S 1000000000u
#define PAGE_NAME "rnicsim-time"
#define GRID_MAX_PS 1000000000000u /* 1 s */
/* A field that the process may write at any moment: one load for each use. */
#define RN_READ_ONCE(field) (*(const volatile __typeof__(field) *)&(field))
#define AHEAD_PS                                                                                   \
	1000000000000u /* 1 s, and so many of the dearest call: a list of work requests is one charge */
#define AHEAD_CALLS 65536u
/* Who has got the baton so often and let no virtual time pass is taken along by so much: others get their turn. */
#define STALLS_MAX 10000u
#define STALL_PS 1000000u
#define SLEEP_FORGIVEN_NS 1000000u
#define ON_KNOWN                                                                                   \
	(RN_TIME_ON_CHANGE | RN_TIME_ON_LOOK | RN_TIME_ON_ANSWER | RN_TIME_ON_SPAWN |              \
	 RN_TIME_ON_MESSAGE)

static void fill(struct rn_time_page *page, const struct rn_scenario *scenario, unsigned host,
		 unsigned ordinal)
{
	const struct rn_cpu_params *cpu = &scenario->host[host].cpu;

	page->slots = RN_TIME_SLOTS;
	page->host = host;
	page->ordinal = ordinal;
	page->seed = scenario->seed;
	page->simulator_pid = getpid();
	atomic_store(&page->processor, -1);
	page->epoch_ns = cpu->epoch_s * NS_PER_S;
	page->tsc_hz = cpu->tsc_hz;
	page->horizon_ps = cpu->poll_horizon_ps;
	page->cost_ps[RN_TIME_POST_SEND] = cpu->post_send_ps;
	page->cost_ps[RN_TIME_POST_SEND_NEXT] = cpu->post_send_next_ps;
	page->cost_ps[RN_TIME_POST_RECV] = cpu->post_recv_ps;
	page->cost_ps[RN_TIME_POST_RECV_NEXT] = cpu->post_recv_next_ps;
	page->cost_ps[RN_TIME_POLL_HIT] = cpu->poll_hit_ps;
	page->cost_ps[RN_TIME_POLL_MISS] = cpu->poll_miss_ps;
	page->cost_ps[RN_TIME_DOORBELL] = cpu->doorbell_ps;
	page->cost_ps[RN_TIME_BLUEFLAME] = cpu->blueflame_64b_ps;
	page->cost_ps[RN_TIME_CQ_EVENT] = cpu->cq_event_ps;
	page->cost_ps[RN_TIME_CLOCK_READ] = cpu->clock_read_ps;
	page->cost_ps[RN_TIME_SYSTEM_CALL] = cpu->system_call_ps;
	page->cost_ps[RN_TIME_MEMORY_POLL] = cpu->memory_poll_ps;
	page->magic = RN_TIME_MAGIC;
}

static uint64_t farthest_ahead_ps(const struct rn_time_page *page)
{
	uint64_t dearest_ps = 0;

	for (unsigned n = 0; n < RN_TIME_COSTS; n++)
		if (page->cost_ps[n] > dearest_ps)
			dearest_ps = page->cost_ps[n];
	return AHEAD_PS + AHEAD_CALLS * dearest_ps;
}

static int make_page(struct rn_vprocess *process)
{
	void *memory;

	process->page_fd = memfd_create(PAGE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (process->page_fd < 0 || ftruncate(process->page_fd, (off_t)RN_TIME_PAGE_BYTES) ||
	    fcntl(process->page_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return errno;
	memory = mmap(NULL, RN_TIME_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		      process->page_fd, 0);
	if (memory == MAP_FAILED)
		return errno;
	process->page = memory;
	return 0;
}

struct rn_vprocess *rn_vprocess_new(pid_t pid, unsigned host, unsigned ordinal,
				    const struct rn_scenario *scenario, enum rn_tsc_mode tsc_mode,
				    int *error)
{
	struct rn_vprocess *process = rn_calloc(1, sizeof(*process));

	process->pid = pid;
	process->host = host;
	process->ordinal = ordinal;
	process->page_fd = -1;
	process->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	*error = process->pidfd < 0 ? errno : make_page(process);
	if (*error) {
		rn_vprocess_free(process);
		return NULL;
	}
	fill(process->page, scenario, host, ordinal);
	process->page->tsc_mode = tsc_mode;
	process->ahead_max_ps = farthest_ahead_ps(process->page);
	return process;
}

void rn_vprocess_free(struct rn_vprocess *process)
{
	if (process->page)
		munmap(process->page, RN_TIME_PAGE_BYTES);
	if (process->page_fd >= 0)
		close(process->page_fd);
	if (process->pidfd >= 0)
		close(process->pidfd);
	free(process);
}

unsigned rn_vprocess_threads(const struct rn_vprocess *process)
{
	const uint32_t used = atomic_load_explicit(&process->page->used, memory_order_relaxed);

	return used < RN_TIME_SLOTS ? used : RN_TIME_SLOTS;
}

bool rn_vprocess_has_page(const struct rn_vprocess *process)
{
	unsigned long inode;
	char line[512];
	struct stat page;
	bool found = false;
	FILE *maps;

	snprintf(line, sizeof(line), "/proc/%d/maps", (int)process->pid);
	maps = fopen(line, "re");
	if (!maps)
		return false;
	if (!fstat(process->page_fd, &page))
		while (!found && fgets(line, sizeof(line), maps))
			found = strstr(line, PAGE_NAME) &&
				sscanf(line, "%*s %*s %*s %*s %lu", &inode) == 1 &&
				inode == page.st_ino;
	fclose(maps);
	return found;
}

uint64_t rn_vthread_clock_ps(const struct rn_vprocess *process, unsigned n, uint64_t sim_ps)
{
	const uint64_t said_ps = RN_READ_ONCE(process->page->slot[n].now_ps);
	const uint64_t limit_ps = sim_ps + process->ahead_max_ps;

	if (said_ps <= sim_ps)
		return sim_ps;
	return said_ps < limit_ps || limit_ps < sim_ps ? said_ps : limit_ps;
}

pid_t rn_vthread_tid(const struct rn_vprocess *process, unsigned n)
{
	const pid_t tid = RN_READ_ONCE(process->page->slot[n].tid);

	return tid > 0 && !rn_task_is_gone(process->pid, tid) ? tid : process->pid;
}

/* A thread whose clock stands still although it gets the baton again and again would keep all others from theirs. */
static void mind_stalls(struct rn_vthread *thread)
{
	if (thread->now_ps > thread->granted_ps || thread->life != RN_VTHREAD_HOLDS)
		thread->stalls = 0;
	else if (thread->stalls < STALLS_MAX)
		thread->stalls++;
	else
		thread->now_ps = thread->granted_ps + STALL_PS;
}

void rn_vthread_copy(struct rn_vprocess *process, unsigned n, uint64_t sim_ps)
{
	const struct rn_time_slot *slot = &process->page->slot[n];
	struct rn_vthread *thread = &process->thread[n];

	RN_ASSERT(thread->life != RN_VTHREAD_WAITS);
	thread->on = RN_READ_ONCE(slot->on) & ON_KNOWN;
	thread->pid = RN_READ_ONCE(slot->pid);
	thread->now_ps = rn_vthread_clock_ps(process, n, sim_ps);
	thread->until_ps = RN_READ_ONCE(slot->until_ps);
	thread->grid_ps = RN_READ_ONCE(slot->grid_ps);
	if (thread->grid_ps > GRID_MAX_PS)
		thread->grid_ps = GRID_MAX_PS;
	mind_stalls(thread);
	thread->life = RN_VTHREAD_WAITS;
	thread->look_ps = thread->changed_ps = RN_TIME_NO_LIMIT;
}

void rn_vthread_grant(struct rn_vprocess *process, unsigned n, uint64_t now_ps, uint64_t quiet_ps)
{
	struct rn_time_slot *slot = &process->page->slot[n];
	struct rn_vthread *thread = &process->thread[n];

	process->has_run = true;
	thread->life = RN_VTHREAD_HOLDS;
	thread->granted_ps = now_ps;
	thread->slept_ns -=
		thread->slept_ns < SLEEP_FORGIVEN_NS ? thread->slept_ns : SLEEP_FORGIVEN_NS;
	slot->now_ps = now_ps;
	slot->quiet_ps = quiet_ps;
	atomic_store(&slot->state, RN_TIME_RUNNING);
	if (atomic_load(&slot->asleep))
		syscall(SYS_futex, &slot->state, FUTEX_WAKE, 1, NULL, NULL, 0);
}

bool rn_vthread_leave_outside(struct rn_vprocess *process, unsigned n)
{
	uint32_t said = RN_TIME_RUNNING;

	RN_ASSERT(process->thread[n].life == RN_VTHREAD_HOLDS);
	while (!atomic_compare_exchange_weak(&process->page->slot[n].state, &said, RN_TIME_OUTSIDE))
		if (said == RN_TIME_WAITING || said == RN_TIME_FREE)
			return false;
	process->thread[n].life = RN_VTHREAD_OUTSIDE;
	process->thread[n].slept_ns = 0;
	return true;
}

void rn_vthread_set_free(struct rn_vprocess *process, unsigned n)
{
	process->thread[n].life = RN_VTHREAD_FREE;
	atomic_store(&process->page->slot[n].state, RN_TIME_FREE);
}
