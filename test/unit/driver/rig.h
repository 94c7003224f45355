/*
 * A driver over the fake NIC, and requests to it that run the simulation until they are answered.
 */
#ifndef RN_TEST_DRIVER_RIG_H
#define RN_TEST_DRIVER_RIG_H

#include "driver/driver.h"
#include "fake_nic.h"

struct rig {
	struct rn_sim *sim;
	struct rn_root_complex *nic;
	struct rn_driver *driver;
	int start_error;
	bool started;
};

/* A client in process: its last answer. */
struct user {
	struct rig *rig;
	struct rn_driver_client *client;
	struct rn_driver_client_info info;
	bool answered;
	uint32_t bytes;
	int fd; /* duplicate of the last descriptor that came, -1 none */
	union {
		struct rn_uapi_rsp rsp;
		struct rn_uapi_device device;
		struct rn_uapi_port port;
		struct rn_uapi_reg_mr_rsp mr;
		struct rn_uapi_destroy_rsp destroy;
		struct rn_uapi_query_qp_rsp qp;
		uint8_t raw[RN_UAPI_MAX_BYTES];
	} answer;
};

/* The answers with an array behind them. */
static inline const struct rn_uapi_run *user_runs(const struct user *user)
{
	return ((const struct rn_uapi_pin_rsp *)(const void *)user->answer.raw)->run;
}

static inline const uint8_t *user_last(const struct user *user)
{
	return user->answer.raw + sizeof(struct rn_uapi_unpin_rsp);
}

/** Fill in what tests want; may be changed before rig_start(). */
void rig_make_env(struct rig *rig, struct rn_driver_env *env);
void rig_start(struct rig *rig, const struct rn_driver_env *env);
/** Both with defaults. */
void rig_init(struct rig *rig);
void rig_fini(struct rig *rig);

/** Run until nothing is due any more. */
void rig_run(struct rig *rig);

void user_init(struct user *user, struct rig *rig);
void user_fini(struct user *user); /* detaches and runs until gone */

/** Send @request of @bytes (its header's bytes are filled in) with @op; the answer's errno. */
int user_call(struct user *user, uint32_t op, void *request, uint32_t bytes);
/** A request that is a header with a handle. */
int user_op(struct user *user, uint32_t op, uint32_t handle);

int user_pin(struct user *user, uint64_t va, uint32_t pages, bool swap);
int user_unpin(struct user *user, uint64_t va, uint32_t pages, bool commit);
int user_reg_mr(struct user *user, uint32_t pd, uint64_t va, uint64_t length, uint32_t access,
		uint32_t *key);
/** Ring and record at @va, pinned already. */
int user_create_cq(struct user *user, uint64_t va, uint32_t cqes, uint32_t channel, uint32_t *cqn);
/** Rings and record in the six pages at @va, pinned already. */
int user_create_qp(struct user *user, uint32_t pd, uint32_t cqn, uint64_t va, uint32_t *qpn);
int user_modify(struct user *user, uint32_t qpn, uint32_t mask, const struct rn_uapi_qp_attr *attr);
/** To RTS with legal attributes. 0 or the errno of the step that failed. */
int user_connect(struct user *user, uint32_t qpn);
/** A PD, a CQ and a QP at @va (eight pages, which it pins). */
void user_make_qp(struct user *user, uint64_t va, uint32_t *pd, uint32_t *cqn, uint32_t *qpn);

extern const struct rn_uapi_qp_attr legal_attr;
#define MASK_INIT 0x39u
#define MASK_RTR 0x129181u
#define MASK_RTS 0x12e01u

#endif
