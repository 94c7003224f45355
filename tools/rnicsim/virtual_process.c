#include "virtual_process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

#define NS_PER_S 1000000000u

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

static int make_page(struct rn_vprocess *process)
{
	void *memory;

	process->page_fd = memfd_create("rnicsim-time", MFD_CLOEXEC | MFD_ALLOW_SEALING);
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
				    const struct rn_scenario *scenario, int *error)
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

void rn_vthread_copy(struct rn_vprocess *process, unsigned n, uint64_t actions)
{
	const struct rn_time_slot *slot = &process->page->slot[n];

	struct rn_vthread *thread = &process->thread[n];

	thread->waiting = true;
	thread->on = slot->on;
	thread->pid = slot->pid;
	thread->now_ps = slot->now_ps;
	thread->until_ps = slot->until_ps;
	thread->grid_ps = slot->grid_ps;
	thread->seen = actions;
	thread->changed_ps = RN_TIME_NO_LIMIT;
}

void rn_vthread_grant(struct rn_vprocess *process, unsigned n, uint64_t now_ps, uint64_t quiet_ps)
{
	struct rn_time_slot *slot = &process->page->slot[n];

	process->thread[n].waiting = false;
	slot->now_ps = now_ps;
	slot->quiet_ps = quiet_ps;
	atomic_store(&slot->state, RN_TIME_RUNNING);
	if (atomic_load(&slot->asleep))
		syscall(SYS_futex, &slot->state, FUTEX_WAKE, 1, NULL, NULL, 0);
}
