/*
 * What verbs promise beside moving data, on a simulated NIC with its real driver: which objects hold which, what a handle
 * that is none gives, what registration refuses, clocks and time stamps, a device opened without privileges.
 *
 * Usage: rc_semantics CASE; exit status 0 when everything was as on Linux, else 1 with what was not.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static int wrong;

/* A call that returns an errno and leaves it in errno, too. */
#define GIVES(expected, call)                                                                      \
	do {                                                                                       \
		errno = 0;                                                                         \
		const int result_ = (call), left_ = errno;                                         \
		if (result_ != (expected) || left_ != (expected)) {                                \
			printf("%s: %d, errno %d, not %d\n", #call, result_, left_, (expected));   \
			wrong++;                                                                   \
		}                                                                                  \
	} while (0)

/* A call that gives no object and leaves an errno. */
#define GIVES_NONE(expected, call)                                                                 \
	do {                                                                                       \
		errno = 0;                                                                         \
		const void *object_ = (call);                                                      \
		if (object_ || errno != (expected)) {                                              \
			printf("%s: %p, errno %d, not %d\n", #call, object_, errno, (expected));   \
			wrong++;                                                                   \
		}                                                                                  \
	} while (0)

#define HOLDS(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("not so: %s (errno %d)\n", #condition, errno);                      \
			wrong++;                                                                   \
		}                                                                                  \
	} while (0)

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	if (!context) {
		perror("no device");
		exit(1);
	}
	ibv_free_device_list(list);
}

static struct ibv_qp *make_qp(struct ibv_cq *send_cq, struct ibv_cq *recv_cq)
{
	struct ibv_qp_init_attr init = {.send_cq = send_cq,
					.recv_cq = recv_cq,
					.qp_type = IBV_QPT_RC,
					.cap = {1, 1, 1, 1, 0}};

	return ibv_create_qp(pd, &init);
}

static void make_objects(void)
{
	open_device();
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	HOLDS(pd && cq);
	qp = make_qp(cq, cq);
	HOLDS(qp);
}

static struct ibv_ah *make_ah(void)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh.hop_limit = 1};

	HOLDS(ibv_query_gid(context, 1, 0, &attr.grh.dgid) == 0);
	return ibv_create_ah(pd, &attr);
}

/* What Linux counts: users of a PD are regions, queue pairs and address handles, of a CQ queue pairs, of a channel CQs. */
static void holding(void)
{
	static uint8_t buf[PAGE];
	struct ibv_comp_channel *channel;
	struct ibv_cq *other;
	struct ibv_mr *mr;
	struct ibv_ah *ah;

	make_objects();
	channel = ibv_create_comp_channel(context);
	other = ibv_create_cq(context, 16, NULL, channel, 0);
	GIVES(EBUSY, ibv_destroy_comp_channel(channel));
	GIVES(EBUSY, ibv_destroy_cq(cq));
	GIVES(EBUSY, ibv_dealloc_pd(pd));
	GIVES(0, ibv_destroy_qp(qp));
	qp = make_qp(other, cq);
	GIVES(EBUSY, ibv_destroy_cq(other));
	GIVES(EBUSY, ibv_destroy_cq(cq));
	GIVES(0, ibv_destroy_qp(qp));
	GIVES(0, ibv_destroy_cq(other));
	GIVES(0, ibv_destroy_cq(cq));
	GIVES(0, ibv_destroy_comp_channel(channel));
	mr = ibv_reg_mr(pd, buf, sizeof(buf), 0);
	GIVES(EBUSY, ibv_dealloc_pd(pd));
	GIVES(0, ibv_dereg_mr(mr));
	ah = make_ah();
	HOLDS(ah);
	GIVES(EBUSY, ibv_dealloc_pd(pd));
	GIVES(0, ibv_destroy_ah(ah));
	GIVES(0, ibv_dealloc_pd(pd));
}

#define GARBLED(handle, check)                                                                     \
	do {                                                                                       \
		const uint32_t handle_ = (handle);                                                 \
		(handle) ^= 0x00dead00;                                                            \
		check;                                                                             \
		(handle) = handle_;                                                                \
	} while (0)

/* Linux 6.1 and rdma-core 44: ENOENT where the call is an ioctl, EINVAL where it is a write. */
static void handles(void)
{
	static uint8_t buf[PAGE];
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct ibv_mr *mr;
	struct ibv_ah *ah;

	make_objects();
	mr = ibv_reg_mr(pd, buf, sizeof(buf), 0);
	ah = make_ah();
	HOLDS(mr && ah);
	GARBLED(mr->handle, GIVES(ENOENT, ibv_dereg_mr(mr)));
	GARBLED(ah->handle, GIVES(ENOENT, ibv_destroy_ah(ah)));
	GARBLED(qp->handle, GIVES(EINVAL, ibv_modify_qp(qp, &attr, IBV_QP_STATE)));
	GARBLED(qp->handle, GIVES(EINVAL, ibv_query_qp(qp, &attr, IBV_QP_STATE, &init)));
	GARBLED(qp->handle, GIVES(ENOENT, ibv_destroy_qp(qp)));
	GARBLED(cq->handle, GIVES(ENOENT, ibv_destroy_cq(cq)));
	GARBLED(pd->handle, GIVES(ENOENT, ibv_dealloc_pd(pd)));
	GARBLED(pd->handle, GIVES_NONE(EINVAL, ibv_reg_mr(pd, buf, sizeof(buf), 0)));
	GARBLED(pd->handle, GIVES_NONE(EINVAL, make_ah()));
	GARBLED(pd->handle, GIVES_NONE(ENOENT, make_qp(cq, cq)));
	GARBLED(cq->handle, GIVES_NONE(ENOENT, make_qp(cq, cq)));
	/* Nothing came of it: all are there and go. */
	GIVES(0, ibv_dereg_mr(mr));
	GIVES(0, ibv_destroy_ah(ah));
	GIVES(0, ibv_destroy_qp(qp));
	GIVES(0, ibv_destroy_cq(cq));
	GIVES(0, ibv_dealloc_pd(pd));
}

/* What cannot be pinned, and what can. */
static void registration(void)
{
	const int fd = memfd_create("short", MFD_CLOEXEC);
	uint8_t *file, *anonymous;
	struct ibv_mr *mr;

	make_objects();
	HOLDS(ftruncate(fd, PAGE) == 0);
	file = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	anonymous =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	GIVES_NONE(EFAULT, ibv_reg_mr(pd, file, 16 * PAGE, IBV_ACCESS_LOCAL_WRITE));
	GIVES_NONE(EFAULT, ibv_reg_mr(pd, file + PAGE, 1, 0));
	mr = ibv_reg_mr(pd, file, PAGE, IBV_ACCESS_LOCAL_WRITE);
	HOLDS(mr);
	GIVES(0, ibv_dereg_mr(mr));
	HOLDS(mprotect(anonymous, PAGE, PROT_NONE) == 0);
	GIVES_NONE(EFAULT, ibv_reg_mr(pd, anonymous, 2 * PAGE, 0));
	HOLDS(mprotect(anonymous, PAGE, PROT_READ) == 0);
	GIVES_NONE(EFAULT, ibv_reg_mr(pd, anonymous, 2 * PAGE, IBV_ACCESS_LOCAL_WRITE));
	GIVES_NONE(EFAULT, ibv_reg_mr(pd, anonymous, 2 * PAGE, IBV_ACCESS_MW_BIND));
	mr = ibv_reg_mr(pd, anonymous, 2 * PAGE, IBV_ACCESS_REMOTE_READ);
	HOLDS(mr);
	GIVES(0, ibv_dereg_mr(mr));
	mr = ibv_reg_mr(pd, anonymous + PAGE, PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	HOLDS(mr);
	GIVES(0, ibv_dereg_mr(mr));
	GIVES_NONE(EINVAL, ibv_reg_mr(pd, anonymous, 0, 0));
	GIVES_NONE(EINVAL, ibv_reg_mr(pd, anonymous + PAGE, PAGE, IBV_ACCESS_REMOTE_WRITE));
	GIVES_NONE(EOPNOTSUPP, ibv_reg_mr(pd, anonymous + PAGE, PAGE, IBV_ACCESS_ON_DEMAND));
	munmap(anonymous, PAGE);
	GIVES_NONE(EFAULT, ibv_reg_mr(pd, anonymous, 2 * PAGE, 0));
}

/* Connect the queue pair with itself. */
static void connect_to_itself(void)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp->qp_num,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh.hop_limit = 1},
	};

	HOLDS(ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid) == 0);
	GIVES(0,
	      ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	GIVES(0, ibv_modify_qp(qp, &attr,
			       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	GIVES(0, ibv_modify_qp(qp, &attr,
			       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

static uint64_t ticks_now(void)
{
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

	GIVES(0, ibv_query_rt_values_ex(context, &values));
	return (uint64_t)values.raw_clock.tv_nsec;
}

static uint64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void write_once(struct ibv_mr *mr)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr, 64, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {(uintptr_t)mr->addr + 64, mr->rkey}};
	struct ibv_send_wr *bad;

	GIVES(0, ibv_post_send(qp, &wr, &bad));
}

/* A completion's stamps lie between two looks at the same clocks. In free-run simulated time falls behind the wall clock. */
static void stamps(bool wall_time)
{
	static uint8_t buf[PAGE];
	struct ibv_cq_init_attr_ex init = {
		.cqe = 16,
		.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_device_attr_ex device;
	struct ibv_poll_cq_attr poll = {0};
	struct ibv_cq_ex *ex;
	struct ibv_mr *mr;

	make_objects();
	GIVES(0, ibv_query_device_ex(context, NULL, &device));
	HOLDS(device.completion_timestamp_mask && device.hca_core_clock);
	ex = ibv_create_cq_ex(context, &init);
	HOLDS(ex);
	cq = ibv_cq_ex_to_cq(ex);
	qp = make_qp(cq, cq);
	mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	HOLDS(qp && mr);
	connect_to_itself();
	for (unsigned n = 0; n < 3 && !wrong; n++) {
		const uint64_t ticks = ticks_now(), wall = wall_ns();

		write_once(mr);
		while (ibv_start_poll(ex, &poll) == ENOENT)
			;
		HOLDS(ex->status == IBV_WC_SUCCESS);
		HOLDS(ibv_wc_read_completion_ts(ex) > ticks);
		HOLDS(ibv_wc_read_completion_ts(ex) <= ticks_now());
		HOLDS(!wall_time || ibv_wc_read_completion_wallclock_ns(ex) > wall);
		HOLDS(ibv_wc_read_completion_wallclock_ns(ex) <= wall_ns());
		ibv_end_poll(ex);
	}
}

static void timestamps(void)
{
	stamps(false);
}

static void wall_time(void)
{
	stamps(true);
}

/* Poll for one completion. */
static enum ibv_wc_status await(void)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) == 0)
		;
	return wc.status;
}

static void cut_file(uint8_t *at, int fd)
{
	(void)at;
	HOLDS(ftruncate(fd, 0) == 0);
}

static void unmap(uint8_t *at, int fd)
{
	(void)fd;
	HOLDS(munmap(at, PAGE) == 0);
}

static void protect(uint8_t *at, int fd)
{
	(void)fd;
	HOLDS(mprotect(at, PAGE, PROT_READ) == 0);
}

/* The memory of a connected queue pair's region goes away; @in_place: it was exchanged for frames, which stay. */
static void lose(void (*take_away)(uint8_t *at, int fd), bool in_place)
{
	const int fd = memfd_create("region", MFD_CLOEXEC);
	struct ibv_async_event event;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_mr *mr;
	uint8_t *at;

	HOLDS(ftruncate(fd, PAGE) == 0);
	at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		  in_place ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, in_place ? -1 : fd, 0);
	qp = make_qp(cq, cq);
	mr = ibv_reg_mr(pd, at, PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	HOLDS(qp && mr);
	connect_to_itself();
	write_once(mr);
	HOLDS(await() == IBV_WC_SUCCESS);
	take_away(at, fd);
	/* A write is under way when it finds out; the one behind it fails at the latest. */
	write_once(mr);
	if (in_place) {
		HOLDS(await() == IBV_WC_SUCCESS);
	} else if (await() == IBV_WC_SUCCESS) {
		GIVES(0, ibv_get_async_event(context, &event));
		HOLDS(event.event_type == IBV_EVENT_QP_FATAL && event.element.qp == qp);
		ibv_ack_async_event(&event);
		write_once(mr);
		HOLDS(await() != IBV_WC_SUCCESS);
	}
	GIVES(0, ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	HOLDS(attr.qp_state == (in_place ? IBV_QPS_RTS : IBV_QPS_ERR));
	GIVES(0, ibv_destroy_qp(qp));
	GIVES(0, ibv_dereg_mr(mr));
	close(fd);
}

/* On hardware pinned pages stay. Here those in frames do; what is reached through the process ends the queue pair. */
static void gone_memory(void)
{
	void (*const ways[])(uint8_t * at, int fd) = {cut_file, unmap, protect};

	make_objects();
	GIVES(0, ibv_destroy_qp(qp));
	for (size_t n = 0; n < sizeof(ways) / sizeof(ways[0]) && !wrong; n++)
		lose(ways[n], false);
	for (size_t n = 1; n < sizeof(ways) / sizeof(ways[0]) && !wrong; n++)
		lose(ways[n], true);
}

static int open_in_child(void)
{
	const pid_t child = fork();
	int status;

	if (child == 0) {
		if (setuid(65534) || geteuid() == 0)
			_exit(2);
		open_device();
		pd = ibv_alloc_pd(context);
		_exit(pd ? 0 : 4);
	}
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return 5;
	return WEXITSTATUS(status);
}

/* The owner of a device file opens it, and so does who was its owner when it started. */
static void privileges(void)
{
	if (geteuid()) {
		puts("skipped: only the superuser has privileges to drop");
		return;
	}
	HOLDS(open_in_child() == 0);
	HOLDS(setuid(65534) == 0);
	make_objects();
	GIVES(0, ibv_destroy_qp(qp));
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"holding", holding},	      {"handles", handles},	{"registration", registration},
	{"timestamps", timestamps},   {"wall_time", wall_time}, {"privileges", privileges},
	{"gone_memory", gone_memory},
};

int main(int argc, char **argv)
{
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		if (argc != 2 || strcmp(argv[1], cases[n].name))
			continue;
		cases[n].run();
		printf("%s: %d wrong\n", cases[n].name, wrong);
		return wrong != 0;
	}
	fprintf(stderr, "usage: rc_semantics CASE\n");
	return 2;
}
