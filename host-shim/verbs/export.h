/*
 * The verbs API as this library exports it: the distribution's header, its functions made visible, and the
 * macros that stand for functions removed, so that they can be defined.
 */
#ifndef RN_VERBS_EXPORT_H
#define RN_VERBS_EXPORT_H

#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#pragma GCC visibility pop

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define RN_EXPORT __attribute__((visibility("default")))

#endif
