/*
 * The driver's objects, shared by its files.
 *
 * What takes time is a chain of callbacks: a function that ends in a command gets a `then` to call when the
 * command has completed. A client has one request under way at most, so its objects change one at a time.
 */
#ifndef RN_DRIVER_INTERNAL_H
#define RN_DRIVER_INTERNAL_H

#include "base/mem.h"
#include "base/rng.h"
#include "driver/buddy.h"
#include "driver/driver.h"
#include "driver/frames.h"
#include "driver/ids.h"
#include "driver/list.h"
#include "driver/outlet.h"
#include "driver/pages.h"
#include "hw/gen/rnic_hw.h"

#define RN_DRIVER_EQ_LOG 12
#define RN_ICM_EQS_MAX 65 /* one for commands and asynchronous events, 64 completion vectors */
#define RN_DRIVER_CHANNELS_MAX 64 /* completion channels of a client */
#define RN_DRIVER_COMMAND_IN_MAX 512
#define RN_QPC_CONFIG_BYTES offsetof(struct rn_hw_qpc, requester)

#define RN_DRIVER_COUNTERS(T, X)                                                                   \
	X(T, clients_attached, "events", "processes that opened the device")                       \
	X(T, clients_ended, "events", "clients ended for a doorbell write outside their pages")    \
	X(T, requests, "requests", "control requests answered")                                    \
	X(T, request_errors, "requests", "of these, answered with an error")                       \
	X(T, commands, "commands", "commands completed by the NIC")                                \
	X(T, command_errors, "commands", "of these, with a status other than OK")                  \
	X(T, interrupts, "events", "MSI-X messages handled")                                       \
	X(T, eqes, "events", "event queue entries read")                                           \
	X(T, comp_events, "events", "completion events given to programs")                         \
	X(T, comp_events_held, "events", "completion events that had to wait for room in a pipe")  \
	X(T, async_events, "events", "asynchronous events given to programs")                      \
	X(T, async_events_lost, "events", "asynchronous events nobody listened for")               \
	X(T, mmio_writes, "writes", "doorbell writes passed on to the NIC")                        \
	X(T, dma_faults, "writes", "DMA writes that found no memory: unmapped or protected since") \
	X(T, connections_without_grh, "queue pairs",                                               \
	  "queue pairs given an address without GRH, which real RoCE refuses")

#define RN_DRIVER_COUNTER_FIELD(T, field, unit, help) RN_COUNTER_FIELD(field, unit, help)

struct rn_driver_counters {
	RN_DRIVER_COUNTERS(, RN_DRIVER_COUNTER_FIELD)
};

/* The driver's memory: tables, queues and mailboxes in arena 0. */
struct rn_icm {
	uint8_t *base;
	uint64_t bytes;
	int arena;
	uint64_t qpc, cqc, srqc, mpt, mtt, eq, command, mailbox; /* offsets */
	uint8_t log_qps, log_cqs, log_srqs, log_mpts, log_mtts;
	uint8_t eqs;
};

struct rn_command {
	struct rn_command *next;
	void (*then)(void *arg, enum rn_cmd_status status, const void *out);
	void *arg;
	uint32_t modifier;
	uint32_t in_bytes, out_bytes;
	uint8_t opcode;
	uint8_t in[RN_DRIVER_COMMAND_IN_MAX];
};

struct rn_commands {
	struct rn_command *slot[RN_CMD_QUEUE_ENTRIES]; /* given to the NIC */
	struct rn_command *first, *last;	       /* waiting for a slot */
	uint32_t pi;
	uint32_t outstanding;
	bool polling; /* no event queue yet: look at the entries now and then */
	bool doorbell_owed;
	struct rn_wake wake;
};

struct rn_eq {
	struct rn_hw_eqe *ring;
	uint32_t ci;
	bool live;
};

struct rn_channel_object {
	struct rn_outlet outlet; /* first */
	struct rn_driver_client *client;
	struct rn_list held; /* CQs with events that wait for room */
	uint32_t handle;
	uint32_t cqs;
};

#define RN_ASYNC_HELD_MAX 64

struct rn_async {
	struct rn_outlet outlet; /* first */
	struct rn_driver *driver;
	struct rn_uapi_async_event held[RN_ASYNC_HELD_MAX];
	uint32_t held_count;
};

struct rn_pd {
	struct rn_list link; /* in the client */
	struct rn_driver_client *client;
	uint32_t number;
	uint32_t users; /* MRs, QPs and AHs */
	bool internal;	/* holds the client's CQ rings; no handle of it exists */
};

struct rn_mkey {
	struct rn_list link; /* MRs: in the client */
	struct rn_driver_client *client;
	struct rn_pd *pd;
	bool is_mr;
	uint32_t key;
	uint32_t mtt_first;
	uint32_t pages;
	uint64_t va; /* page aligned */
	void (*then)(void *arg, struct rn_mkey *mkey, int error);
	void *arg;
};

struct rn_mkey_spec {
	struct rn_pd *pd;
	bool is_mr;
	uint8_t access;
	uint64_t va, length, iova;
};

struct rn_cq_object {
	struct rn_list link; /* in the client */
	struct rn_list held; /* in the channel */
	struct rn_driver_client *client;
	struct rn_mkey *mkey, *new_mkey;
	struct rn_channel_object *channel;
	uint64_t cookie, dbr_va;
	uint32_t cqn;
	uint32_t qps;
	uint32_t comp_events, comp_held, async_events;
	bool live;
	struct rn_hw_cqc config, new_config;
	int error;
	void (*then)(struct rn_cq_object *cq);
};

struct rn_qp_object {
	struct rn_list link; /* in the client */
	struct rn_driver_client *client;
	struct rn_pd *pd;
	struct rn_cq_object *send_cq, *recv_cq;
	struct rn_mkey *sq, *rq;
	uint64_t sq_va, rq_va, dbr_va, cookie;
	uint32_t sq_bytes, rq_bytes;
	uint32_t qpn;
	uint32_t async_events;
	uint8_t state; /* what the NIC was told last */
	bool failed;   /* the NIC has put it into the error state since */
	bool live;
	/* First RN_QPC_CONFIG_BYTES used; `fresh` is that of the RESET state. */
	struct rn_hw_qpc config, new_config, fresh;
	struct rn_uapi_qp_attr attr, new_attr;
	uint8_t new_state;
	int error;
	void (*then)(struct rn_qp_object *qp);
	uint16_t stamped_pi; /* see post_stamp.h */
};

struct rn_ah_object {
	struct rn_list link; /* in the client */
	struct rn_driver_client *client;
	struct rn_pd *pd;
	uint32_t number;
};

struct rn_driver_client {
	struct rn_list link;
	struct rn_driver *driver;
	rn_driver_answer *answer;
	void *answer_arg;
	pid_t pid;
	int arena;	   /* of the frames */
	int process_arena; /* fallback; -1 none yet */
	struct rn_frames frames;
	struct rn_pages pages;
	struct rn_rng rng;  /* order and length of runs */
	uint64_t put_first; /* frames being given back */
	uint32_t put_pages;
	uint32_t uar_group;
	struct rn_pd *pd; /* of the CQ rings */
	struct rn_list pds, ahs, mrs, cqs, qps;
	struct rn_channel_object *channel[RN_DRIVER_CHANNELS_MAX]; /* handle - 1 */
	struct rn_async async;
	bool busy; /* a request is under way */
	bool leaving;
	uint32_t pending; /* destroys under way while leaving */
	uint32_t stage;
	void (*gone)(void *arg);
	void *gone_arg;
	uint32_t request_bytes;
	_Alignas(8) uint8_t request[RN_UAPI_MAX_BYTES];
	_Alignas(8) uint8_t response[RN_UAPI_MAX_BYTES];
};

struct rn_driver {
	struct rn_driver_env env;
	char *name;
	struct rn_sim *sim;
	struct rn_root_complex *rc;
	struct rn_host_memory *memory;
	struct rn_uapi_device device;
	struct rn_uapi_port port;
	struct rn_icm icm;
	struct rn_commands commands;
	struct rn_eq eq[RN_ICM_EQS_MAX];
	struct rn_ids pds, ahs, mpts, cqns, qpns, uars;
	struct rn_buddy mtts;
	uint8_t *variant; /* last variant byte, per MPT index */
	struct rn_pd **pd;
	struct rn_ah_object **ah;
	struct rn_mkey **mkey; /* by MPT index */
	struct rn_cq_object **cq;
	struct rn_qp_object **qp;
	struct rn_list clients;
	uint32_t client_count;
	uint64_t clients_ever;
	uint32_t pd_count, mr_count, channel_count;
	uint64_t pinned_pages;
	uint32_t uar_pages;
	char without_grh[RN_DRIVER_PROGRAM_BYTES]; /* the first program that connected so */
	int epoll_fd;
	bool ready;
	struct rn_driver_counters counters;
	/* Start. */
	uint32_t registers[8];
	uint32_t registers_read;
	uint32_t next_eq;
	void (*started)(void *arg, int error);
	void *started_arg;
};

/* icm.c */
int rn_icm_init(struct rn_driver *driver);
void rn_icm_fini(struct rn_driver *driver);
static inline uint64_t rn_icm_pa(const struct rn_icm *icm, uint64_t offset)
{
	return rn_pa(icm->arena, offset);
}
void rn_icm_set_mtt(struct rn_icm *icm, uint64_t index, uint64_t pa);

/* command.c */
void rn_commands_init(struct rn_driver *driver);
void rn_commands_fini(struct rn_driver *driver);
void rn_command_submit(struct rn_driver *driver, uint8_t opcode, uint32_t modifier, const void *in,
		       uint32_t in_bytes, uint32_t out_bytes,
		       void (*then)(void *arg, enum rn_cmd_status status, const void *out),
		       void *arg);
/** EQE_COMMAND of queue slot @slot. */
void rn_command_event(struct rn_driver *driver, uint32_t slot);
void rn_command_set_polling(struct rn_driver *driver, bool polling);
/** The verbs errno for a command's status. */
int rn_command_errno(enum rn_cmd_status status);

/* event.c */
void rn_event_interrupt(void *driver, uint32_t vector);
void rn_channel_free(struct rn_channel_object *channel);
/** Take back unread events of a CQ or QP that is going away, and drop what is held. */
void rn_event_forget_cq(struct rn_cq_object *cq);
void rn_event_forget_qp(struct rn_qp_object *qp);
void rn_channel_create_request(struct rn_driver_client *client, const void *request);
void rn_channel_destroy_request(struct rn_driver_client *client, const void *request);
void rn_async_open_request(struct rn_driver_client *client, const void *request);
struct rn_channel_object *rn_channel_find(struct rn_driver_client *client, uint32_t handle);

/** The driver itself has put the QP, if it still is there, into the error state. */
void rn_event_qp_fatal(struct rn_driver *driver, uint32_t qpn);

/* fault.c */
/** A DMA write found no memory at @pa. @arg: the driver. */
void rn_fault_write(void *arg, uint64_t pa);

/* client.c */
void rn_client_answer(struct rn_driver_client *client, int error, uint32_t handle);
/** @response starts with the header; its error, bytes and handle are filled in here. */
void rn_client_answer_with(struct rn_driver_client *client, void *response, uint32_t bytes,
			   uint32_t handle, const int *fds, uint32_t fd_count);
void rn_client_free(struct rn_driver_client *client);

/* pin.c */
void rn_pin_request(struct rn_driver_client *client, const void *request);
void rn_unpin_request(struct rn_driver_client *client, const void *request);
/** Drop all pages of a client that leaves. */
void rn_pin_fini(struct rn_driver_client *client);
/** Count a use of the page of @va; false when it is not pinned. */
bool rn_pin_use(struct rn_driver_client *client, uint64_t va, uint64_t *pa);
void rn_pin_unuse(struct rn_driver_client *client, uint64_t va);

/* mkey.c */
/** 0: @then comes later, or an errno and it does not. */
int rn_mkey_create(struct rn_driver_client *client, const struct rn_mkey_spec *spec,
		   void (*then)(void *arg, struct rn_mkey *mkey, int error), void *arg);
/** @then gets mkey NULL. */
void rn_mkey_destroy(struct rn_mkey *mkey, void (*then)(void *arg, struct rn_mkey *mkey, int error),
		     void *arg);
/** Free without a command. */
void rn_mkey_free(struct rn_mkey *mkey);

/* pd_mr.c */
struct rn_pd *rn_pd_new(struct rn_driver_client *client, bool internal);
void rn_pd_free(struct rn_pd *pd);
struct rn_pd *rn_pd_find(struct rn_driver_client *client, uint32_t number);
void rn_pd_alloc_request(struct rn_driver_client *client, const void *request);
void rn_pd_dealloc_request(struct rn_driver_client *client, const void *request);
void rn_mr_reg_request(struct rn_driver_client *client, const void *request);
void rn_mr_dereg_request(struct rn_driver_client *client, const void *request);

/* cq.c */
struct rn_cq_object *rn_cq_find(struct rn_driver_client *client, uint32_t cqn);
/** Destroy on the NIC; @then frees the object. */
void rn_cq_release(struct rn_cq_object *cq, void (*then)(struct rn_cq_object *cq));
void rn_cq_free(struct rn_cq_object *cq);
void rn_cq_create_request(struct rn_driver_client *client, const void *request);
void rn_cq_resize_request(struct rn_driver_client *client, const void *request);
void rn_cq_destroy_request(struct rn_driver_client *client, const void *request);

/* qp.c */
struct rn_qp_object *rn_qp_find(struct rn_driver_client *client, uint32_t qpn);
/** Destroy on the NIC; @then frees the object. */
void rn_qp_release(struct rn_qp_object *qp, void (*then)(struct rn_qp_object *qp));
void rn_qp_free(struct rn_qp_object *qp);
void rn_qp_create_request(struct rn_driver_client *client, const void *request);
void rn_qp_destroy_request(struct rn_driver_client *client, const void *request);

/* ah.c */
void rn_ah_free(struct rn_ah_object *ah);
void rn_ah_create_request(struct rn_driver_client *client, const void *request);
void rn_ah_destroy_request(struct rn_driver_client *client, const void *request);

/* qp_modify.c */
/** Is the address in @attr one that the host can reach? 0 or the errno of Linux. */
int rn_qp_check_address(const struct rn_driver *driver, const struct rn_uapi_qp_attr *attr);
void rn_qp_modify_request(struct rn_driver_client *client, const void *request);
void rn_qp_query_request(struct rn_driver_client *client, const void *request);

#endif
