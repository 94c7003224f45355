/*
 * What the doorbell unit decodes from BAR writes, and the BAR port itself. The messages come from messages.toml, as
 * those of the RTL.
 */
#ifndef RN_NIC_MSG_DOORBELL_H
#define RN_NIC_MSG_DOORBELL_H

#include "nic/msg/gen/doorbell.h"

#endif
