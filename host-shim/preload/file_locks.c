/*
 * Locks on files and the queues and semaphores of System V and POSIX in virtual time: a call that would block is
 * repeated in its form that does not.
 */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdarg.h>
#include <string.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <unistd.h>

#include "preload/descriptors.h"
#include "preload/waits.h"

/* --- files --- */

struct file_look {
	int fd, operation, result;
	void *arg;
};

static bool look_flock(void *arg)
{
	struct file_look *look = arg;

	look->result = RN_REAL(flock)(look->fd, look->operation | LOCK_NB);
	return look->result == 0 || errno != EWOULDBLOCK;
}

RN_EXPORT int flock(int fd, int operation)
{
	struct file_look look = {.fd = fd, .operation = operation};
	int result;

	if (rn_virtual_is_on() && !(operation & (LOCK_NB | LOCK_UN))) {
		rn_virtual_charge_call();
		if (!rn_wait_call(look_flock, &look, RN_TIME_NO_LIMIT, 0) || rn_virtual_is_on())
			return look.result;
	}
	result = RN_REAL(flock)(fd, operation);
	rn_descriptor_done(result == 0);
	return result;
}

static bool look_fcntl(void *arg)
{
	struct file_look *look = arg;

	look->result = RN_REAL(fcntl)(look->fd, look->operation, look->arg);
	return look->result == 0 || (errno != EAGAIN && errno != EACCES);
}

static int wait_lock(int fd, int operation, void *arg)
{
	struct file_look look = {.fd = fd, .arg = arg};

	look.operation = operation == F_OFD_SETLKW ? F_OFD_SETLK : F_SETLK;
	rn_virtual_charge_call();
	if (!rn_wait_call(look_fcntl, &look, RN_TIME_NO_LIMIT, 0))
		return -1;
	rn_virtual_act();
	return look.result;
}

static int any_fcntl(int fd, int operation, void *arg)
{
	int result;

	if (rn_virtual_is_on() && (operation == F_SETLKW || operation == F_OFD_SETLKW))
		return wait_lock(fd, operation, arg);
	result = RN_REAL(fcntl)(fd, operation, arg);
	if (operation == F_SETLK || operation == F_OFD_SETLK)
		rn_descriptor_done(result == 0);
	return result;
}

RN_EXPORT int fcntl(int fd, int operation, ...)
{
	va_list list;
	void *arg;

	va_start(list, operation);
	arg = va_arg(list, void *);
	va_end(list);
	return any_fcntl(fd, operation, arg);
}

RN_EXPORT int fcntl64(int fd, int operation, ...)
{
	va_list list;
	void *arg;

	va_start(list, operation);
	arg = va_arg(list, void *);
	va_end(list);
	return any_fcntl(fd, operation, arg);
}

RN_EXPORT int lockf(int fd, int command, off_t bytes)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_len = bytes};

	if (command == F_ULOCK)
		lock.l_type = F_UNLCK;
	else if (command != F_LOCK && command != F_TLOCK)
		return RN_REAL(lockf)(fd, command, bytes);
	return fcntl(fd, command == F_LOCK ? F_SETLKW : F_SETLK, &lock);
}

RN_EXPORT int lockf64(int fd, int command, off64_t bytes)
{
	return lockf(fd, command, bytes);
}

/* --- System V --- */

struct queue_look {
	int id, flags;
	void *message;
	const void *sent;
	size_t bytes;
	long type;
	ssize_t result;
};

static bool look_receive(void *arg)
{
	struct queue_look *look = arg;

	look->result = RN_REAL(msgrcv)(look->id, look->message, look->bytes, look->type,
				       look->flags | IPC_NOWAIT);
	return look->result >= 0 || errno != ENOMSG;
}

static bool look_send(void *arg)
{
	struct queue_look *look = arg;

	look->result = RN_REAL(msgsnd)(look->id, look->sent, look->bytes, look->flags | IPC_NOWAIT);
	return look->result == 0 || errno != EAGAIN;
}

static ssize_t wait_queue(bool (*look_at)(void *arg), struct queue_look *look)
{
	rn_virtual_charge_call();
	if (!rn_wait_once(look_at, look, RN_TIME_NO_LIMIT, 0))
		return -1;
	rn_descriptor_done(look->result >= 0);
	return look->result;
}

RN_EXPORT ssize_t msgrcv(int id, void *message, size_t bytes, long type, int flags)
{
	struct queue_look look = {
		.id = id, .flags = flags, .message = message, .bytes = bytes, .type = type};

	if (!rn_virtual_is_on() || flags & IPC_NOWAIT) {
		const ssize_t result = RN_REAL(msgrcv)(id, message, bytes, type, flags);

		rn_descriptor_done(result >= 0);
		return result;
	}
	return wait_queue(look_receive, &look);
}

RN_EXPORT int msgsnd(int id, const void *message, size_t bytes, int flags)
{
	struct queue_look look = {.id = id, .flags = flags, .sent = message, .bytes = bytes};

	if (!rn_virtual_is_on() || flags & IPC_NOWAIT) {
		const int result = RN_REAL(msgsnd)(id, message, bytes, flags);

		rn_descriptor_done(result == 0);
		return result;
	}
	return (int)wait_queue(look_send, &look);
}

#define OPERATIONS_MAX 500 /* the system's own limit */

struct semaphore_look {
	int id, result;
	struct sembuf operations[OPERATIONS_MAX];
	size_t count;
};

static bool look_semaphores(void *arg)
{
	struct semaphore_look *look = arg;

	look->result = RN_REAL(semop)(look->id, look->operations, look->count);
	return look->result == 0 || errno != EAGAIN;
}

RN_EXPORT int semtimedop(int id, struct sembuf *operations, size_t count,
			 const struct timespec *timeout)
{
	struct semaphore_look look = {.id = id, .count = count};
	bool waits = false;

	if (!rn_virtual_is_on() || count > OPERATIONS_MAX)
		return RN_REAL(semtimedop)(id, operations, count, timeout);
	for (size_t i = 0; i < count; i++) {
		look.operations[i] = operations[i];
		look.operations[i].sem_flg |= IPC_NOWAIT;
		waits = waits || !(operations[i].sem_flg & IPC_NOWAIT);
	}
	rn_virtual_charge_call();
	if (!rn_wait_once(look_semaphores, &look,
			  waits ? rn_wait_after_ps(timeout) : rn_virtual_now_ps(), EAGAIN))
		return -1;
	rn_descriptor_done(look.result == 0);
	return look.result;
}

RN_EXPORT int semop(int id, struct sembuf *operations, size_t count)
{
	return rn_virtual_is_on() ? semtimedop(id, operations, count, NULL)
				  : RN_REAL(semop)(id, operations, count);
}

RN_EXPORT int semctl(int id, int number, int command, ...)
{
	va_list list;
	void *arg;
	int result;

	va_start(list, command);
	arg = va_arg(list, void *);
	va_end(list);
	result = RN_REAL(semctl)(id, number, command, arg);
	rn_descriptor_done(result >= 0);
	return result;
}

/* --- POSIX message queues: descriptors --- */

static uint64_t limit_ps(const struct timespec *time)
{
	return time ? rn_wait_deadline_ps(CLOCK_REALTIME, time) : RN_TIME_NO_LIMIT;
}

static ssize_t receive(mqd_t queue, char *message, size_t bytes, unsigned *priority,
		       const struct timespec *time)
{
	ssize_t result;

	if (!rn_descriptor_before_read_until(queue, limit_ps(time)))
		return -1;
	result = RN_REAL(mq_receive)(queue, message, bytes, priority);
	rn_descriptor_done(result >= 0);
	return result;
}

RN_EXPORT ssize_t mq_timedreceive(mqd_t queue, char *restrict message, size_t bytes,
				  unsigned *restrict priority, const struct timespec *restrict time)
{
	return rn_virtual_is_on() ? receive(queue, message, bytes, priority, time)
				  : RN_REAL(mq_timedreceive)(queue, message, bytes, priority, time);
}

RN_EXPORT ssize_t mq_receive(mqd_t queue, char *message, size_t bytes, unsigned *priority)
{
	return rn_virtual_is_on() ? receive(queue, message, bytes, priority, NULL)
				  : RN_REAL(mq_receive)(queue, message, bytes, priority);
}

static int send_message(mqd_t queue, const char *message, size_t bytes, unsigned priority,
			const struct timespec *time)
{
	int result;

	if (!rn_descriptor_before_write_until(queue, limit_ps(time)))
		return -1;
	result = RN_REAL(mq_send)(queue, message, bytes, priority);
	rn_descriptor_done(result == 0);
	return result;
}

RN_EXPORT int mq_timedsend(mqd_t queue, const char *message, size_t bytes, unsigned priority,
			   const struct timespec *time)
{
	return rn_virtual_is_on() ? send_message(queue, message, bytes, priority, time)
				  : RN_REAL(mq_timedsend)(queue, message, bytes, priority, time);
}

RN_EXPORT int mq_send(mqd_t queue, const char *message, size_t bytes, unsigned priority)
{
	return rn_virtual_is_on() ? send_message(queue, message, bytes, priority, NULL)
				  : RN_REAL(mq_send)(queue, message, bytes, priority);
}
