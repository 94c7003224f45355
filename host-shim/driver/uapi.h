/*
 * Protocol between the user library and the driver: the analogue of the kernel's uverbs. One
 * SOCK_SEQPACKET unix socket a process; one request, one answer, in order; file descriptors pass as
 * SCM_RIGHTS. A client may send anything: the driver checks every handle, length and owner and never
 * answers with another client's data. The library serialises its calls with a mutex; after fork a child
 * has no connection (calls fail with ENODEV) unless it opens the device afresh.
 *
 * The socket's path is in the environment variable RNICSIM_SOCKET, the host's number in RNICSIM_HOST.
 */
#ifndef RN_DRIVER_UAPI_H
#define RN_DRIVER_UAPI_H

#include <stdint.h>

#define RN_UAPI_VERSION 1
#define RN_UAPI_MAX_BYTES 65536 /* of one request or answer with its payload */
#define RN_UAPI_MAX_PAGES 4096	/* pages of one RN_UAPI_PIN */

#define RN_ENV_SOCKET "RNICSIM_SOCKET"
#define RN_ENV_HOST "RNICSIM_HOST"
#define RN_ENV_NET                                                                                 \
	"RNICSIM_NET" /* a.b.hosts: the loopback network of the run, for the preload library */

/* Beside the socket: the hosts' virtual files, made by the preload library, removed with the run's folder. */
#define RN_RUN_FILES "files"

enum rn_uapi_op {
	RN_UAPI_ATTACH =
		1, /* first request; answer carries 3 descriptors: channel memfd, arena memfd, wake eventfd */
	RN_UAPI_QUERY_DEVICE, /* answer: rn_uapi_device */
	RN_UAPI_QUERY_PORT,   /* answer: rn_uapi_port */
	RN_UAPI_ALLOC_PD,     /* answer handle = PD number */
	RN_UAPI_DEALLOC_PD,
	RN_UAPI_PIN, /* get frames for pages; answer: runs */
	RN_UAPI_UNPIN,
	RN_UAPI_REG_MR, /* answer handle, lkey = rkey */
	RN_UAPI_DEREG_MR,
	RN_UAPI_CREATE_CHANNEL, /* completion channel; answer carries its descriptor: the client's end, 8-byte reads
				   of the CQ's user cookie (one record an event) */
	RN_UAPI_DESTROY_CHANNEL,
	RN_UAPI_CREATE_CQ,
	RN_UAPI_RESIZE_CQ,
	RN_UAPI_DESTROY_CQ, /* answer: events delivered so far */
	RN_UAPI_CREATE_QP,
	RN_UAPI_MODIFY_QP,
	RN_UAPI_QUERY_QP,
	RN_UAPI_DESTROY_QP, /* answer: async events delivered so far */
	RN_UAPI_OPEN_ASYNC, /* answer carries a descriptor: reads give rn_uapi_async_event records */
	/* Destroying or deallocating what does not exist gives ENOENT, what others still refer to EBUSY. */
	RN_UAPI_ATTACH_TIME, /* first and only request of a connection; answer: 1 descriptor, the time page */
	RN_UAPI_CREATE_AH, /* answer handle; it holds its PD */
	RN_UAPI_DESTROY_AH,
	RN_UAPI_QUERY_CLOCK, /* answer: rn_uapi_clock */
};

struct rn_uapi_req {
	uint32_t op;	/* enum rn_uapi_op */
	uint32_t bytes; /* of the whole request */
	uint32_t handle;
	uint32_t reserved;
};

struct rn_uapi_rsp {
	int32_t error;	/* 0 or a positive errno */
	uint32_t bytes; /* of the whole answer */
	uint32_t handle;
	uint32_t reserved;
};

struct rn_uapi_attach {
	struct rn_uapi_req req;
	uint32_t version;
	uint32_t host;
	uint32_t pid;
	uint32_t reserved;
};

/* Its program makes system calls and reads clocks without the C library: nobody can answer for it. */
#define RN_UAPI_TIME_BARE 1u

/* The answer is struct rn_uapi_rsp. ENOTSUP: no virtual time in this run; EBUSY: the process has its page already. */
struct rn_uapi_attach_time {
	struct rn_uapi_req req;
	uint32_t version;
	uint32_t host;
	uint32_t tid;	 /* the caller's; the first thread of its process */
	uint32_t flags;	 /* RN_UAPI_TIME_* */
	uint64_t now_ps; /* virtual time of the parent at fork, 0 without */
};

struct rn_uapi_attach_rsp {
	struct rn_uapi_rsp rsp;
	uint64_t arena_bytes;	/* size of the arena memfd */
	uint64_t channel_bytes; /* size of the channel memfd */
	uint32_t uar_pages; /* doorbell pages of this process: page numbers 0 .. n-1 in channel offsets */
	uint32_t hosts;
	uint32_t free_run; /* 1: programs see the wall clock */
	uint32_t reserved;
};

/* Device attributes; where the verbs API has the same name, the same meaning. */
struct rn_uapi_device {
	struct rn_uapi_rsp rsp;
	char name[16]; /* rnicsim0 */
	char fw_ver[32];
	char board_id[32];
	uint64_t node_guid_be, sys_image_guid_be;
	uint64_t max_mr_size, page_size_cap;
	uint32_t vendor_id, vendor_part_id, hw_ver;
	uint32_t max_qp, max_qp_wr, max_sge, max_sge_rd, max_recv_sge, max_cq, max_cqe, max_mr,
		max_pd;
	uint32_t max_qp_rd_atom, max_qp_init_rd_atom, max_res_rd_atom, max_inline_data;
	uint32_t max_srq, max_srq_wr, max_srq_sge, max_ah, max_mcast_grp;
	uint32_t atomic_cap, device_cap_flags, num_comp_vectors, local_ca_ack_delay;
	uint32_t max_sq_wqebbs; /* of one QP */
	uint32_t core_khz;	/* hca_core_clock */
	uint32_t allow_no_grh; /* 1: an RC connection without GRH is mapped to GID 0 of the destination LID's host */
	uint32_t blueflame_bytes; /* a lone WQE of at most so many bytes may go through the BlueFlame buffers; 0: none */
};

/* The NIC's free-running clock: what it stamps completions with. */
struct rn_uapi_clock {
	struct rn_uapi_rsp rsp;
	uint64_t now_ps;
};

struct rn_uapi_port {
	struct rn_uapi_rsp rsp;
	uint32_t state, max_mtu, active_mtu, gid_tbl_len, pkey_tbl_len;
	uint32_t port_cap_flags, max_msg_sz, bad_pkey_cntr, qkey_viol_cntr;
	uint32_t active_width, active_speed, phys_state, link_layer, lid, sm_lid, lmc;
	uint32_t flags;
	uint32_t gids; /* valid entries of gid[] */
	uint8_t gid[16][16];
	uint8_t gid_type[16]; /* 2: RoCE v2 */
	uint8_t mac[6];
	uint8_t reserved[2];
	uint16_t pkey[8];
};

/*
 * Pages of [va, va + pages * 4096), page aligned. swap[] is a bitmap (bit i of byte i/8): 1 the library will
 * map the frame in place of the page; 0 fallback, the NIC reaches the page through the process.
 * Pages that are pinned already keep their frame and gain a reference. Order of use: PIN, library swaps the new pages
 * (answer's fresh bitmap), REG_MR / CREATE_*; DEREG_MR / DESTROY_*, library copies back what nobody needs, UNPIN.
 */
struct rn_uapi_pin {
	struct rn_uapi_req req;
	uint64_t va;
	uint32_t pages; /* 1 .. RN_UAPI_MAX_PAGES; a longer range takes several requests */
	uint32_t reserved;
	uint8_t swap[]; /* (pages + 7) / 8 bytes */
};

struct rn_uapi_run {
	uint64_t arena_offset; /* page aligned; UINT64_MAX: fallback pages */
	uint32_t pages;
	uint32_t fresh; /* 1: newly pinned, the library must swap them in; 0: were pinned before */
};

struct rn_uapi_pin_rsp {
	struct rn_uapi_rsp rsp; /* handle = number of runs, in order of va */
	struct rn_uapi_run run[];
};

/* UNPIN drops one reference of each page; the answer is the bitmap of pages whose last reference went away. With
 * commit 0 it only says what would go (the library then copies these back), with commit 1 it drops and frees the frames. */
struct rn_uapi_unpin {
	struct rn_uapi_req req;
	uint64_t va;
	uint32_t pages;
	uint32_t commit;
};

struct rn_uapi_unpin_rsp {
	struct rn_uapi_rsp rsp;
	uint8_t last[]; /* (pages + 7) / 8 bytes */
};

struct rn_uapi_reg_mr {
	struct rn_uapi_req req;
	uint32_t pd;
	uint32_t access; /* RN_ACCESS_*, optional bits already removed */
	uint64_t va;	 /* of the memory in the process, pinned */
	uint64_t length; /* bytes; 0 is legal: a key that allows nothing */
	uint64_t iova;	 /* address that WQEs and peers use */
};

struct rn_uapi_reg_mr_rsp {
	struct rn_uapi_rsp rsp;
	uint32_t lkey, rkey;
};

/* Queue buffers and doorbell records are pinned memory of the process. */
struct rn_uapi_create_cq {
	struct rn_uapi_req req;
	uint32_t cqes;	  /* power of two; ring entries */
	uint32_t channel; /* handle of a completion channel, 0 none */
	uint64_t cookie;  /* user's, read from the completion channel */
	uint64_t ring_va; /* cqes * 64 bytes, page aligned */
	uint64_t dbr_va;  /* struct rn_hw_cq_dbr, 8-byte aligned */
	uint32_t vector;
	uint32_t uar_page; /* relative: 0 .. uar_pages-1 */
};

/* Answer: struct rn_uapi_rsp; handle = CQN. */

struct rn_uapi_resize_cq {
	struct rn_uapi_req req; /* handle = CQN */
	uint32_t cqes;
	uint32_t reserved;
	uint64_t ring_va;
};

struct rn_uapi_destroy_rsp {
	struct rn_uapi_rsp rsp;
	uint32_t comp_events;
	uint32_t async_events;
};

struct rn_uapi_create_qp {
	struct rn_uapi_req req;
	uint32_t pd;
	uint32_t service; /* RN_QPT_RC */
	uint32_t send_cq, recv_cq;
	uint32_t sq_wqebbs;   /* power of two; 0: no send queue */
	uint32_t rq_wqes;     /* power of two; 0: no receive queue */
	uint32_t rq_segments; /* data segments of a receive WQE, power of two */
	uint32_t rq_max_sge;
	uint64_t sq_va, rq_va; /* page aligned */
	uint64_t dbr_va;
	uint64_t cookie; /* comes with async events */
	uint32_t uar_page;
	uint32_t reserved;
};

/* Answer: struct rn_uapi_rsp; handle = QPN. */

/* Attributes in verbs terms; legality by state table is the driver's to check. */
struct rn_uapi_qp_attr {
	uint32_t qp_state, cur_qp_state, path_mtu, path_mig_state;
	uint32_t qkey, rq_psn, sq_psn, dest_qpn, access;
	uint32_t pkey_index, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer;
	uint32_t port_num, timeout, retry_cnt, rnr_retry, en_sqd_async_notify;
	/* Address handle. */
	uint32_t is_global, sgid_index, hop_limit, traffic_class, flow_label, dlid, sl, ah_port;
	uint8_t dgid[16];
};

struct rn_uapi_modify_qp {
	struct rn_uapi_req req; /* handle = QPN */
	uint32_t attr_mask;	/* IBV_QP_* */
	uint32_t reserved;
	struct rn_uapi_qp_attr attr;
};

struct rn_uapi_create_ah {
	struct rn_uapi_req req;
	uint32_t pd;
	uint32_t reserved;
	struct rn_uapi_qp_attr attr; /* the address handle's fields alone */
};

struct rn_uapi_query_qp_rsp {
	struct rn_uapi_rsp rsp;
	struct rn_uapi_qp_attr attr;
};

struct rn_uapi_async_event {
	uint64_t cookie;     /* of the QP or CQ; 0 for a port or device event */
	uint32_t event_type; /* enum ibv_event_type */
	uint32_t object;     /* QPN, CQN or port */
};

#endif
