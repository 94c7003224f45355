/*
 * Pinning: frames for pages, in runs. A page keeps its frame while it is pinned or something on the NIC
 * refers to it.
 *
 * Fresh pages of one request lie in at least two runs if there are two, and runs grow with the range,
 * so that 1 GiB takes fewer than 2,000 mappings of the program.
 */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/rng.h"
#include "driver/internal.h"

#define RUNS_MAX ((RN_UAPI_MAX_BYTES - sizeof(struct rn_uapi_pin_rsp)) / sizeof(struct rn_uapi_run))
#define SMALL_RUN_PAGES 16u

struct pin_job {
	struct rn_driver_client *client;
	const struct rn_uapi_pin *request;
	struct rn_uapi_pin_rsp *response;
	uint32_t runs;
	uint32_t done; /* pages */
	uint32_t run_min, run_max;
	bool fresh_before;
};

static uint64_t va_of(const struct pin_job *job, uint32_t page)
{
	return job->request->va + (uint64_t)page * RN_FRAME_BYTES;
}

static bool wants_swap(const struct pin_job *job, uint32_t page)
{
	return job->request->swap[page / 8] >> page % 8 & 1;
}

/* Pages from @page on that are not pinned yet and are all to be swapped, or all not. */
static uint32_t fresh_pages(const struct pin_job *job, uint32_t page)
{
	const bool swap = wants_swap(job, page);
	uint32_t end = page;

	while (end < job->request->pages && wants_swap(job, end) == swap &&
	       !rn_pages_find(&job->client->pages, va_of(job, end)))
		end++;
	return end - page;
}

static bool add_run(struct pin_job *job, uint64_t arena_offset, uint32_t pages, bool fresh)
{
	if (job->runs == RUNS_MAX)
		return false;
	job->response->run[job->runs++] = (struct rn_uapi_run){arena_offset, pages, fresh};
	job->done += pages;
	return true;
}

static int pin_fallback(struct pin_job *job, uint32_t pages)
{
	struct rn_driver_client *client = job->client;

	if (client->process_arena < 0)
		client->process_arena =
			rn_host_memory_add_process(client->driver->memory, client->pid);
	if (client->process_arena < 0)
		return ENOMEM;

	const uint32_t start = job->done;

	if (!add_run(job, UINT64_MAX, pages, true))
		return EMSGSIZE;
	for (uint32_t n = start; n < start + pages; n++)
		rn_pages_add(&client->pages, va_of(job, n),
			     rn_pa(client->process_arena, va_of(job, n)));
	return 0;
}

static uint32_t run_length(struct pin_job *job, uint32_t pages)
{
	const uint32_t span = job->run_max - job->run_min + 1;
	uint32_t length = job->run_min + (uint32_t)rn_rng_below(&job->client->rng, span);

	/* Not all in one run: the program's realloc() would grow the mapping over the gap behind. */
	if (!job->fresh_before && pages > 1 && length >= pages)
		length = pages - 1;
	return length < pages ? length : pages;
}

static int pin_frames(struct pin_job *job, uint32_t pages)
{
	struct rn_driver_client *client = job->client;

	while (pages) {
		const uint32_t length = run_length(job, pages);
		const uint32_t start = job->done;
		uint64_t frame;

		if (!rn_frames_get(&client->frames, length, &frame))
			return ENOMEM;
		if (!add_run(job, frame * RN_FRAME_BYTES, length, true)) {
			rn_frames_put(&client->frames, frame, length);
			return EMSGSIZE;
		}
		for (uint32_t n = 0; n < length; n++)
			rn_pages_add(&client->pages, va_of(job, start + n),
				     rn_pa(client->arena, (frame + n) * RN_FRAME_BYTES));
		job->fresh_before = true;
		pages -= length;
	}
	return 0;
}

/* One page that is pinned already; joins the run before when it continues it. */
static int pin_again(struct pin_job *job, struct rn_page *page)
{
	const bool fallback = page->pa >> RN_PA_OFFSET_BITS != (uint64_t)job->client->arena;
	const uint64_t offset =
		fallback ? UINT64_MAX : page->pa & ((UINT64_C(1) << RN_PA_OFFSET_BITS) - 1);
	struct rn_uapi_run *last = job->runs ? &job->response->run[job->runs - 1] : NULL;

	if (page->pins == UINT32_MAX)
		return EOVERFLOW;
	if (last && !last->fresh &&
	    (fallback ? last->arena_offset == UINT64_MAX
		      : last->arena_offset + (uint64_t)last->pages * RN_FRAME_BYTES == offset)) {
		last->pages++;
		job->done++;
	} else if (!add_run(job, offset, 1, false)) {
		return EMSGSIZE;
	}
	page->pins++;
	return 0;
}

static int pin_pages(struct pin_job *job)
{
	int error = 0;

	while (!error && job->done < job->request->pages) {
		struct rn_page *page = rn_pages_find(&job->client->pages, va_of(job, job->done));

		if (page)
			error = pin_again(job, page);
		else if (wants_swap(job, job->done))
			error = pin_frames(job, fresh_pages(job, job->done));
		else
			error = pin_fallback(job, fresh_pages(job, job->done));
	}
	return error;
}

/* Frames to give back are gathered: one system call for what is contiguous (so of one run). */
static void flush_frames(struct rn_driver_client *client)
{
	if (client->put_pages)
		rn_frames_put(&client->frames, client->put_first, client->put_pages);
	client->put_pages = 0;
}

static void put_frame(struct rn_driver_client *client, uint64_t frame)
{
	if (client->put_pages && client->put_first + client->put_pages != frame)
		flush_frames(client);
	if (!client->put_pages)
		client->put_first = frame;
	client->put_pages++;
}

static void free_page(struct rn_driver_client *client, struct rn_page *page)
{
	const uint64_t arena = page->pa >> RN_PA_OFFSET_BITS;
	const uint64_t offset = page->pa & ((UINT64_C(1) << RN_PA_OFFSET_BITS) - 1);

	if (arena == (uint64_t)client->arena)
		put_frame(client, offset / RN_FRAME_BYTES);
	rn_pages_remove(&client->pages, page);
	client->driver->pinned_pages--;
}

static void drop_pin(struct rn_driver_client *client, uint64_t va)
{
	struct rn_page *page = rn_pages_find(&client->pages, va);

	if (!--page->pins && !page->uses)
		free_page(client, page);
}

static int check_range(uint64_t va, uint32_t pages)
{
	if (!pages || pages > RN_UAPI_MAX_PAGES || va % RN_FRAME_BYTES)
		return EINVAL;
	if (va >> 47 || (va + (uint64_t)pages * RN_FRAME_BYTES - 1) >> 47)
		return EINVAL;
	return 0;
}

static uint32_t count_fresh(const struct rn_driver_client *client, uint64_t va, uint32_t pages)
{
	uint32_t fresh = 0;

	for (uint32_t n = 0; n < pages; n++)
		fresh += !rn_pages_find(&client->pages, va + (uint64_t)n * RN_FRAME_BYTES);
	return fresh;
}

static int check_pin(const struct rn_driver_client *client, const struct rn_uapi_pin *request,
		     uint32_t *fresh)
{
	const struct rn_driver *driver = client->driver;
	const int error = check_range(request->va, request->pages);

	if (error || client->request_bytes < sizeof(*request) + (request->pages + 7) / 8)
		return EINVAL;
	*fresh = count_fresh(client, request->va, request->pages);
	if (driver->pinned_pages + *fresh > driver->env.max_pinned_pages)
		return ENOMEM;
	return 0;
}

void rn_pin_request(struct rn_driver_client *client, const void *request)
{
	struct pin_job job = {
		.client = client,
		.request = request,
		.response = (void *)client->response,
	};
	uint32_t fresh;
	int error = check_pin(client, job.request, &fresh);

	if (error) {
		rn_client_answer(client, error, 0);
		return;
	}
	job.run_max = fresh / 4 > SMALL_RUN_PAGES ? fresh / 4 : SMALL_RUN_PAGES;
	if (job.run_max > RN_FRAME_RUN_MAX)
		job.run_max = RN_FRAME_RUN_MAX;
	job.run_min = job.run_max > SMALL_RUN_PAGES ? job.run_max / 2 : 1;

	const uint64_t before = client->pages.used;

	error = pin_pages(&job);
	client->driver->pinned_pages += client->pages.used - before;
	if (error) {
		for (uint32_t n = 0; n < job.done; n++)
			drop_pin(client, va_of(&job, n));
		flush_frames(client);
		rn_client_answer(client, error, 0);
		return;
	}
	rn_client_answer_with(
		client, job.response,
		(uint32_t)(sizeof(*job.response) + job.runs * sizeof(struct rn_uapi_run)), job.runs,
		NULL, 0);
}

/* Fill in which pages would go; EINVAL: one is not pinned, EBUSY: one is in use and would go. */
static int find_last(struct rn_driver_client *client, const struct rn_uapi_unpin *request,
		     struct rn_uapi_unpin_rsp *response)
{
	memset(response->last, 0, (request->pages + 7) / 8);
	for (uint32_t n = 0; n < request->pages; n++) {
		const struct rn_page *page =
			rn_pages_find(&client->pages, request->va + (uint64_t)n * RN_FRAME_BYTES);

		if (!page || !page->pins)
			return EINVAL;
		if (page->pins > 1)
			continue;
		if (page->uses)
			return EBUSY;
		response->last[n / 8] |= (uint8_t)(1u << n % 8);
	}
	return 0;
}

void rn_unpin_request(struct rn_driver_client *client, const void *request)
{
	const struct rn_uapi_unpin *unpin = request;
	struct rn_uapi_unpin_rsp *response = (void *)client->response;
	int error = check_range(unpin->va, unpin->pages);

	if (!error)
		error = find_last(client, unpin, response);
	if (error) {
		rn_client_answer(client, error, 0);
		return;
	}
	for (uint32_t n = 0; unpin->commit && n < unpin->pages; n++)
		drop_pin(client, unpin->va + (uint64_t)n * RN_FRAME_BYTES);
	flush_frames(client);
	rn_client_answer_with(client, response,
			      (uint32_t)(sizeof(*response) + (unpin->pages + 7) / 8), 0, NULL, 0);
}

void rn_pin_fini(struct rn_driver_client *client)
{
	client->driver->pinned_pages -= client->pages.used;
	rn_pages_fini(&client->pages);
}

bool rn_pin_use(struct rn_driver_client *client, uint64_t va, uint64_t *pa)
{
	struct rn_page *page = rn_pages_find(&client->pages, va);

	if (!page || !page->pins || page->uses == UINT32_MAX)
		return false;
	page->uses++;
	*pa = page->pa + va % RN_FRAME_BYTES;
	return true;
}

void rn_pin_unuse(struct rn_driver_client *client, uint64_t va)
{
	struct rn_page *page = rn_pages_find(&client->pages, va);

	RN_ASSERT(page && page->uses);
	if (!--page->uses && !page->pins)
		free_page(client, page);
	flush_frames(client);
}

bool rn_driver_find_pa(const struct rn_driver_client *client, uint64_t va, uint64_t *pa)
{
	const struct rn_page *page = rn_pages_find(&client->pages, va);

	if (!page)
		return false;
	*pa = page->pa + va % RN_FRAME_BYTES;
	return true;
}
