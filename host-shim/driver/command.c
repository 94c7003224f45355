/*
 * Command queue: 64 entries in memory with a mailbox pair each, a doorbell register, completion by
 * EQE_COMMAND on EQ 0. Until that EQ exists the entries' owner bytes are polled. More commands than
 * entries wait in software.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "driver/internal.h"

#define POLL_INTERVAL_PS UINT64_C(1000000)
#define RETRY_INTERVAL_PS UINT64_C(200000)

static struct rn_hw_cmd *entry_at(struct rn_driver *driver, uint32_t slot)
{
	return (struct rn_hw_cmd *)(void *)(driver->icm.base + driver->icm.command +
					    (uint64_t)slot * RN_CMD_BYTES);
}

static uint64_t mailbox_offset(const struct rn_driver *driver, uint32_t slot, bool out)
{
	return driver->icm.mailbox + (slot * 2u + out) * (uint64_t)RN_MAILBOX_BYTES;
}

static void write_entry(struct rn_driver *driver, uint32_t slot, const struct rn_command *command)
{
	struct rn_icm *icm = &driver->icm;
	struct rn_hw_cmd *entry = entry_at(driver, slot);

	*entry = (struct rn_hw_cmd){
		.opcode = command->opcode,
		.modifier = command->modifier,
		.in_bytes = command->in_bytes,
		.out_bytes = command->out_bytes,
	};
	if (command->in_bytes) {
		entry->in_pa = rn_icm_pa(icm, mailbox_offset(driver, slot, false));
		memcpy(icm->base + mailbox_offset(driver, slot, false), command->in,
		       command->in_bytes);
	}
	if (command->out_bytes)
		entry->out_pa = rn_icm_pa(icm, mailbox_offset(driver, slot, true));
	__atomic_store_n(&entry->owner, 1, __ATOMIC_RELEASE);
}

static void ring(struct rn_driver *driver)
{
	struct rn_commands *commands = &driver->commands;
	const uint64_t now_ps = rn_sim_now_ps(driver->sim);

	commands->doorbell_owed = !rn_root_complex_mmio_write(
		driver->rc, now_ps, RN_REG_CMD_DOORBELL, &commands->pi, sizeof(commands->pi));
	if (commands->doorbell_owed)
		rn_wake_at(driver->sim, &commands->wake, now_ps + RETRY_INTERVAL_PS);
	else if (commands->polling)
		rn_wake_at(driver->sim, &commands->wake, now_ps + POLL_INTERVAL_PS);
}

static void give_to_nic(struct rn_driver *driver)
{
	struct rn_commands *commands = &driver->commands;
	const uint32_t pi = commands->pi;

	while (commands->first) {
		const uint32_t slot = commands->pi % RN_CMD_QUEUE_ENTRIES;
		struct rn_command *command = commands->first;

		if (commands->slot[slot])
			break;
		commands->first = command->next;
		write_entry(driver, slot, command);
		commands->slot[slot] = command;
		commands->outstanding++;
		commands->pi++;
	}
	if (commands->pi != pi)
		ring(driver);
}

void rn_command_submit(struct rn_driver *driver, uint8_t opcode, uint32_t modifier, const void *in,
		       uint32_t in_bytes, uint32_t out_bytes,
		       void (*then)(void *arg, enum rn_cmd_status status, const void *out),
		       void *arg)
{
	struct rn_commands *commands = &driver->commands;
	struct rn_command *command = rn_calloc(1, sizeof(*command));

	RN_ASSERT(in_bytes <= sizeof(command->in) && out_bytes <= RN_MAILBOX_BYTES);
	command->opcode = opcode;
	command->modifier = modifier;
	command->in_bytes = in_bytes;
	command->out_bytes = out_bytes;
	command->then = then;
	command->arg = arg;
	if (in_bytes)
		memcpy(command->in, in, in_bytes);
	if (commands->first)
		commands->last->next = command;
	else
		commands->first = command;
	commands->last = command;
	give_to_nic(driver);
}

/* Finish the command in @slot if the NIC has given it back. */
static void complete(struct rn_driver *driver, uint32_t slot)
{
	struct rn_commands *commands = &driver->commands;
	struct rn_command *command = commands->slot[slot];
	struct rn_hw_cmd *entry = entry_at(driver, slot);

	if (!command || __atomic_load_n(&entry->owner, __ATOMIC_ACQUIRE) & 1)
		return;

	const enum rn_cmd_status status = (enum rn_cmd_status)entry->status;

	driver->counters.commands++;
	driver->counters.command_errors += status != RN_CMD_OK;
	commands->slot[slot] = NULL;
	commands->outstanding--;
	/* A new command may take the slot from inside; the NIC writes its output later. */
	command->then(command->arg, status, driver->icm.base + mailbox_offset(driver, slot, true));
	free(command);
	give_to_nic(driver);
}

void rn_command_event(struct rn_driver *driver, uint32_t slot)
{
	if (slot < RN_CMD_QUEUE_ENTRIES)
		complete(driver, slot);
}

void rn_command_set_polling(struct rn_driver *driver, bool polling)
{
	driver->commands.polling = polling;
}

static void wake(void *arg)
{
	struct rn_driver *driver = arg;
	struct rn_commands *commands = &driver->commands;

	if (commands->doorbell_owed)
		ring(driver);
	if (!commands->polling)
		return;
	for (uint32_t slot = 0; slot < RN_CMD_QUEUE_ENTRIES; slot++)
		complete(driver, slot);
	if (commands->polling && commands->outstanding)
		rn_wake_at(driver->sim, &commands->wake,
			   rn_sim_now_ps(driver->sim) + POLL_INTERVAL_PS);
}

void rn_commands_init(struct rn_driver *driver)
{
	rn_wake_init(driver->sim, &driver->commands.wake, wake, driver);
}

void rn_commands_fini(struct rn_driver *driver)
{
	struct rn_commands *commands = &driver->commands;

	rn_wake_cancel(driver->sim, &commands->wake);
	for (uint32_t slot = 0; slot < RN_CMD_QUEUE_ENTRIES; slot++)
		free(commands->slot[slot]);
	while (commands->first) {
		struct rn_command *command = commands->first;

		commands->first = command->next;
		free(command);
	}
}

int rn_command_errno(enum rn_cmd_status status)
{
	switch (status) {
	case RN_CMD_OK:
		return 0;
	case RN_CMD_BAD_OPCODE:
		return EOPNOTSUPP;
	case RN_CMD_DMA_ERROR:
		return EIO;
	default:
		return EINVAL;
	}
}
