/* The ring of posted writes between a process and the simulator. */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "bar/channel.h"
#include "run_suite.h"

static struct rn_channel channel;
static uint64_t head;
static struct rn_channel_entry entry;

static void clear(void)
{
	memset(&channel, 0, sizeof(channel));
	head = 0;
}

START_TEST(writes_come_out_as_they_went_in)
{
	const uint8_t data[64] = {1, 2, 3, 64};

	ck_assert_int_eq(rn_channel_take(&channel, &head, &entry), RN_CHANNEL_EMPTY);
	ck_assert(rn_channel_post(&channel, 55, 2, 0x800, data, 64));
	ck_assert(rn_channel_post(&channel, 56, 3, 0x20, data, 8));
	ck_assert_int_eq(rn_channel_take(&channel, &head, &entry), RN_CHANNEL_TAKEN);
	ck_assert_uint_eq(entry.at_ps, 55);
	ck_assert_uint_eq(entry.page, 2);
	ck_assert_uint_eq(entry.offset, 0x800);
	ck_assert_uint_eq(entry.len, 64);
	ck_assert_mem_eq(entry.data, data, 64);
	ck_assert_int_eq(rn_channel_take(&channel, &head, &entry), RN_CHANNEL_TAKEN);
	ck_assert_uint_eq(entry.len, 8);
	ck_assert_int_eq(rn_channel_take(&channel, &head, &entry), RN_CHANNEL_EMPTY);
}
END_TEST

START_TEST(a_full_ring_refuses_until_one_is_taken)
{
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < RN_CHANNEL_ENTRIES; i++)
			ck_assert(rn_channel_post(&channel, i, 0, 0, &i, 4));
		ck_assert(!rn_channel_post(&channel, 0, 0, 0, "1234", 4));
		for (unsigned i = 0; i < RN_CHANNEL_ENTRIES; i++) {
			ck_assert_int_eq(rn_channel_take(&channel, &head, &entry),
					 RN_CHANNEL_TAKEN);
			ck_assert_uint_eq(entry.at_ps, i);
		}
	}
}
END_TEST

START_TEST(senseless_indexes_are_noticed)
{
	atomic_store(&channel.tail, RN_CHANNEL_ENTRIES + 1);
	ck_assert_int_eq(rn_channel_take(&channel, &head, &entry), RN_CHANNEL_CORRUPT);
	atomic_store(&channel.tail, 0);
	head = 5;
	ck_assert_int_eq(rn_channel_take(&channel, &head, &entry), RN_CHANNEL_CORRUPT);
}
END_TEST

START_TEST(the_producers_head_does_not_move_the_consumer)
{
	ck_assert(rn_channel_post(&channel, 7, 0, 0, "1234", 4));
	atomic_store(&channel.head, 1);
	ck_assert_int_eq(rn_channel_take(&channel, &head, &entry), RN_CHANNEL_TAKEN);
	ck_assert_uint_eq(entry.at_ps, 7);
}
END_TEST

START_TEST(only_a_sleeping_simulator_is_woken)
{
	const int fd = eventfd(0, EFD_NONBLOCK);
	uint64_t count;

	rn_channel_kick(&channel, fd);
	ck_assert_int_lt(read(fd, &count, sizeof(count)), 0);
	atomic_store(&channel.asleep, 1);
	rn_channel_kick(&channel, fd);
	ck_assert_int_eq(read(fd, &count, sizeof(count)), sizeof(count));
	close(fd);
}
END_TEST

#define STRESS 200000u

static void *produce(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < STRESS; i++)
		while (!rn_channel_post(&channel, i, i, 0, &i, 4))
			sched_yield();
	return NULL;
}

START_TEST(a_producer_and_a_consumer_agree_without_a_lock)
{
	pthread_t thread;

	pthread_create(&thread, NULL, produce, NULL);
	for (uint32_t i = 0; i < STRESS;) {
		const enum rn_channel_take got = rn_channel_take(&channel, &head, &entry);
		uint32_t value;

		if (got == RN_CHANNEL_EMPTY) {
			sched_yield();
			continue;
		}
		ck_assert_int_eq(got, RN_CHANNEL_TAKEN);
		memcpy(&value, entry.data, sizeof(value));
		ck_assert_uint_eq(entry.at_ps, i);
		ck_assert_uint_eq(value, i);
		i++;
	}
	pthread_join(thread, NULL);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("channel");

	tcase_add_checked_fixture(tc, clear, NULL);
	tcase_add_test(tc, writes_come_out_as_they_went_in);
	tcase_add_test(tc, a_full_ring_refuses_until_one_is_taken);
	tcase_add_test(tc, senseless_indexes_are_noticed);
	tcase_add_test(tc, the_producers_head_does_not_move_the_consumer);
	tcase_add_test(tc, only_a_sleeping_simulator_is_woken);
	tcase_add_test(tc, a_producer_and_a_consumer_agree_without_a_lock);
	return run_suite(tc, "channel");
}
