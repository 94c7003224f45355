/*
 * The NIC's clock, which stamps completions: it counts simulated time in ticks of hca_core_clock.
 */
#include <errno.h>
#include <time.h>

#include "verbs/objects.h"
#include "verbs/virtual_time.h"

#define PS_PER_NS 1000u
#define PS_PER_MS UINT64_C(1000000000)
#define NS_PER_S UINT64_C(1000000000)

uint64_t rn_clock_ticks(const struct rn_conn *conn, uint64_t ps)
{
	const uint64_t khz = conn->device.core_khz;

	return ps / PS_PER_MS * khz + ps % PS_PER_MS * khz / PS_PER_MS;
}

static int query(struct rn_conn *conn, uint64_t *now_ps)
{
	struct rn_uapi_req req = {.op = RN_UAPI_QUERY_CLOCK};
	struct rn_uapi_clock rsp;
	const int error = rn_conn_call(conn, &req, sizeof(req), &rsp, sizeof(rsp));

	*now_ps = rsp.now_ps;
	return error;
}

int rn_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	struct rn_conn *conn = rn_conn_of(context);
	uint64_t now_ps;
	int error;

	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return rn_return(EINVAL);
	if (!values->comp_mask)
		return 0;
	error = query(conn, &now_ps);
	if (error)
		return error;
	/* Ticks, as of every device: tv_sec is not used. */
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = (long)rn_clock_ticks(conn, now_ps);
	return 0;
}

static int read_wall(uint64_t *wall_ns)
{
	struct timespec wall;

	if (clock_gettime(CLOCK_REALTIME, &wall))
		return errno;
	*wall_ns = (uint64_t)wall.tv_sec * NS_PER_S + (uint64_t)wall.tv_nsec;
	return 0;
}

uint64_t rn_clock_wall_ns(uint64_t epoch_ns, uint64_t ps)
{
	uint64_t at = epoch_ns + ps / PS_PER_NS, now = 0;

	/* In free-run simulated time was behind when the epoch was found, and may have caught up since. */
	if (!rn_vt_is_on() && !read_wall(&now) && now < at)
		at = now;
	return at;
}

/* CLOCK_REALTIME, and the simulated time that it is now. */
static int read_both(struct rn_conn *conn, uint64_t *wall_ns, uint64_t *now_ps)
{
	int error = 0;

	if (!rn_vt_is_on())
		error = query(conn, now_ps);
	if (!error)
		error = read_wall(wall_ns);
	if (rn_vt_is_on())
		*now_ps = rn_vt_now_ps();
	return error;
}

int rn_clock_find_epoch(struct rn_conn *conn, uint64_t *epoch_ns)
{
	uint64_t wall_ns = 0, now_ps = 0;
	const int error = read_both(conn, &wall_ns, &now_ps);

	if (!error)
		*epoch_ns = wall_ns - now_ps / PS_PER_NS;
	return error;
}
