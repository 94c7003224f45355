/*
 * Symbols that provider libraries (libmlx5, libefa: perftest and libfabric link them) need in order to load. None of
 * their devices is ever found, so the only one that is called is the registration in their constructors.
 */
#include <errno.h>
#include <stdbool.h>

#include "verbs/export.h"

/* Callers have their own idea of the arguments; nobody looks at them. */
#define RN_STUBS(X)                                                                                \
	X(__verbs_log)                                                                             \
	X(_verbs_init_and_alloc_context)                                                           \
	X(execute_ioctl)                                                                           \
	X(ibv_cmd_advise_mr)                                                                       \
	X(ibv_cmd_alloc_dm)                                                                        \
	X(ibv_cmd_alloc_mw)                                                                        \
	X(ibv_cmd_alloc_pd)                                                                        \
	X(ibv_cmd_attach_mcast)                                                                    \
	X(ibv_cmd_close_xrcd)                                                                      \
	X(ibv_cmd_create_ah)                                                                       \
	X(ibv_cmd_create_counters)                                                                 \
	X(ibv_cmd_create_cq_ex)                                                                    \
	X(ibv_cmd_create_flow)                                                                     \
	X(ibv_cmd_create_flow_action_esp)                                                          \
	X(ibv_cmd_create_qp_ex)                                                                    \
	X(ibv_cmd_create_qp_ex2)                                                                   \
	X(ibv_cmd_create_rwq_ind_table)                                                            \
	X(ibv_cmd_create_srq)                                                                      \
	X(ibv_cmd_create_srq_ex)                                                                   \
	X(ibv_cmd_create_wq)                                                                       \
	X(ibv_cmd_dealloc_mw)                                                                      \
	X(ibv_cmd_dealloc_pd)                                                                      \
	X(ibv_cmd_dereg_mr)                                                                        \
	X(ibv_cmd_destroy_ah)                                                                      \
	X(ibv_cmd_destroy_counters)                                                                \
	X(ibv_cmd_destroy_cq)                                                                      \
	X(ibv_cmd_destroy_flow)                                                                    \
	X(ibv_cmd_destroy_flow_action)                                                             \
	X(ibv_cmd_destroy_qp)                                                                      \
	X(ibv_cmd_destroy_rwq_ind_table)                                                           \
	X(ibv_cmd_destroy_srq)                                                                     \
	X(ibv_cmd_destroy_wq)                                                                      \
	X(ibv_cmd_detach_mcast)                                                                    \
	X(ibv_cmd_free_dm)                                                                         \
	X(ibv_cmd_get_context)                                                                     \
	X(ibv_cmd_modify_cq)                                                                       \
	X(ibv_cmd_modify_flow_action_esp)                                                          \
	X(ibv_cmd_modify_qp)                                                                       \
	X(ibv_cmd_modify_qp_ex)                                                                    \
	X(ibv_cmd_modify_srq)                                                                      \
	X(ibv_cmd_modify_wq)                                                                       \
	X(ibv_cmd_open_qp)                                                                         \
	X(ibv_cmd_open_xrcd)                                                                       \
	X(ibv_cmd_query_context)                                                                   \
	X(ibv_cmd_query_device_any)                                                                \
	X(ibv_cmd_query_mr)                                                                        \
	X(ibv_cmd_query_port)                                                                      \
	X(ibv_cmd_query_qp)                                                                        \
	X(ibv_cmd_query_srq)                                                                       \
	X(ibv_cmd_read_counters)                                                                   \
	X(ibv_cmd_reg_dm_mr)                                                                       \
	X(ibv_cmd_reg_dmabuf_mr)                                                                   \
	X(ibv_cmd_reg_mr)                                                                          \
	X(ibv_cmd_rereg_mr)                                                                        \
	X(ibv_cmd_resize_cq)                                                                       \
	X(verbs_init_cq)                                                                           \
	X(verbs_open_device)                                                                       \
	X(verbs_set_ops)                                                                           \
	X(verbs_uninit_context)

#define RN_DEFINE_STUB(name)                                                                       \
	RN_EXPORT int name(void);                                                                  \
	int name(void)                                                                             \
	{                                                                                          \
		errno = ENOSYS;                                                                    \
		return ENOSYS;                                                                     \
	}

RN_STUBS(RN_DEFINE_STUB)

extern RN_EXPORT bool verbs_allow_disassociate_destroy;
bool verbs_allow_disassociate_destroy;

RN_EXPORT void verbs_register_driver_34(const void *ops);

void verbs_register_driver_34(const void *ops)
{
	(void)ops;
}
