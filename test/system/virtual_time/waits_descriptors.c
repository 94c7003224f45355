/* Waits on descriptors, files, futexes, signals and children. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "waits.h"

#define BIG_BYTES 1000000

static int ends[2];
static char big[BIG_BYTES];
static volatile sig_atomic_t handled;

static void on_signal(int signo)
{
	handled = signo;
}

static void handle(int signo, int flags)
{
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};

	sigaction(signo, &action, NULL);
}

static sigset_t set_of(int signo)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signo);
	return set;
}

/* --- pipes and sockets --- */

static void *read_slowly(void *arg)
{
	static char data[BIG_BYTES];
	size_t done = 0;

	while (done < BIG_BYTES) {
		ssize_t n;

		sleep_ms(1);
		n = read(ends[0], data, 50000);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done == BIG_BYTES && !memcmp(data, big, 1) ? (void *)data : arg;
}

static void write_big(void)
{
	pthread_t id = start(read_slowly, NULL);
	void *result;

	memset(big, 'x', sizeof(big));
	say("written", write(ends[1], big, sizeof(big)));
	pthread_join(id, &result);
	say("read", result != NULL);
}

static void run_big_pipe(void)
{
	if (!pipe(ends))
		write_big();
}

static void run_big_socket(void)
{
	if (!socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		write_big();
}

static void *write_halves(void *arg)
{
	for (unsigned i = 0; i < 2; i++) {
		sleep_ms(100);
		if (write(ends[1], "12345678", 8) < 0)
			abort();
	}
	return arg;
}

static void run_receive_all(void)
{
	const struct timeval limit = {0, 40000};
	char data[16];
	pthread_t id;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return;
	setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	say("timed out", read(ends[0], data, 1) < 0 && errno == EAGAIN);
	setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){0}, sizeof(limit));
	id = start(write_halves, NULL);
	say("all", recv(ends[0], data, sizeof(data), MSG_WAITALL));
	pthread_join(id, NULL);
}

static void run_messages(void)
{
	struct iovec part[2] = {{big, 8}, {big + 8, 8}};
	struct mmsghdr message[2] = {{.msg_hdr = {.msg_iov = &part[0], .msg_iovlen = 1}},
				     {.msg_hdr = {.msg_iov = &part[1], .msg_iovlen = 1}}};
	pthread_t id;

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends))
		return;
	id = start(write_halves, NULL);
	say("received", recvmmsg(ends[0], message, 2, 0, NULL));
	pthread_join(id, NULL);
	say("sent", sendmmsg(ends[0], message, 2, 0));
}

static void run_move(void)
{
	int out[2];
	pthread_t id;

	if (pipe(ends) || pipe(out))
		return;
	id = start(write_halves, NULL);
	say("spliced", splice(ends[0], NULL, out[1], NULL, 100, 0));
	say("teed", tee(ends[0], out[1], 100, 0));
	pthread_join(id, NULL);
}

static void *accept_late(void *arg)
{
	const int listener = (int)(intptr_t)arg;

	for (unsigned i = 0; i < 4; i++) {
		sleep_ms(100);
		accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	}
	return NULL;
}

/* A listener whose queue is full makes the third one wait. */
static void run_connect(void)
{
	const struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0rnicsim-waits"};
	const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	pthread_t id;

	if (bind(listener, (const struct sockaddr *)&name, sizeof(name)) || listen(listener, 1))
		abort();
	id = start(accept_late, (void *)(intptr_t)listener);
	for (unsigned i = 0; i < 4; i++)
		say("connected", connect(socket(AF_UNIX, SOCK_STREAM, 0),
					 (const struct sockaddr *)&name, sizeof(name)));
	pthread_join(id, NULL);
}

static void *tell_event(void *arg)
{
	sleep_ms(100);
	eventfd_write((int)(intptr_t)arg, 5);
	return NULL;
}

static void run_event(void)
{
	const int fd = eventfd(0, 0);
	pthread_t id = start(tell_event, (void *)(intptr_t)fd);
	eventfd_t value = 0;

	eventfd_read(fd, &value);
	say("event", (long)value);
	pthread_join(id, NULL);
}

/* --- files and queues: a child has them for 100 ms --- */

static void run_file_locks(void)
{
	char name[] = "/tmp/rnicsim-waits-XXXXXX";
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	const int fd = mkstemp(name);

	if (fork() == 0) {
		const int own = open(name, O_RDWR);

		flock(own, LOCK_EX);
		fcntl(own, F_SETLKW, &lock);
		sleep_ms(100);
		flock(own, LOCK_UN);
		sleep_ms(100);
		_exit(0);
	}
	sleep_ms(10);
	say("flock", flock(fd, LOCK_EX));
	say("lock", fcntl(fd, F_SETLKW, &lock));
	wait(NULL);
	unlink(name);
}

struct message {
	long type;
	char text[8];
};

static void run_queues(void)
{
	const int queue = msgget(IPC_PRIVATE, 0600), group = semget(IPC_PRIVATE, 1, 0600);
	struct message message = {1, "queue"};
	struct sembuf up = {0, 1, 0}, down = {0, -1, 0};
	struct timespec limit = {0, 20 * MS};

	if (fork() == 0) {
		sleep_ms(100);
		msgsnd(queue, &message, sizeof(message.text), 0);
		sleep_ms(100);
		semop(group, &up, 1);
		_exit(0);
	}
	say("received", msgrcv(queue, &message, sizeof(message.text), 0, 0));
	say("timed out", semtimedop(group, &down, 1, &limit) < 0 && errno == EAGAIN);
	say("semaphore", semop(group, &down, 1));
	wait(NULL);
	msgctl(queue, IPC_RMID, NULL);
	semctl(group, 0, IPC_RMID);
}

static void run_message_queue(void)
{
	struct mq_attr attribute = {.mq_maxmsg = 1, .mq_msgsize = 8};
	const mqd_t queue = mq_open("/rnicsim-waits", O_RDWR | O_CREAT, 0600, &attribute);
	struct timespec soon;
	char text[8];

	mq_unlink("/rnicsim-waits");
	if (fork() == 0) {
		for (unsigned i = 0; i < 2; i++) {
			sleep_ms(100);
			mq_send(queue, "text", 4, 0);
		}
		_exit(0);
	}
	soon = in_ms(CLOCK_REALTIME, 20);
	say("timed out", mq_timedreceive(queue, text, 8, NULL, &soon) < 0 && errno == ETIMEDOUT);
	say("received", mq_receive(queue, text, 8, NULL));
	say("received", mq_receive(queue, text, 8, NULL));
	wait(NULL);
	say("sent", mq_send(queue, "text", 4, 0));
	soon = in_ms(CLOCK_REALTIME, 20);
	say("full", mq_timedsend(queue, "text", 4, 0, &soon) < 0 && errno == ETIMEDOUT);
}

static int word;

static long futex(int operation, int value, const struct timespec *time)
{
	return syscall(SYS_futex, &word, operation, value, time, NULL, FUTEX_BITSET_MATCH_ANY);
}

static void *wake_word(void *arg)
{
	sleep_ms(100);
	word = 1;
	futex(FUTEX_WAKE_PRIVATE, 1, NULL);
	return arg;
}

static void run_futex(void)
{
	const struct timespec limit = {0, 20 * MS}, soon = in_ms(CLOCK_MONOTONIC, 40);
	pthread_t id = start(wake_word, NULL);

	say("changed", futex(FUTEX_WAIT_PRIVATE, 7, NULL) < 0 && errno == EAGAIN);
	say("timed out", futex(FUTEX_WAIT_PRIVATE, 0, &limit) < 0 && errno == ETIMEDOUT);
	say("timed out", futex(FUTEX_WAIT_BITSET_PRIVATE, 0, &soon) < 0 && errno == ETIMEDOUT);
	say("woken", futex(FUTEX_WAIT_PRIVATE, 0, NULL));
	pthread_join(id, NULL);
}

/* --- signals: a child sends one after 100 ms --- */

static void send_late(int signo)
{
	const pid_t parent = getpid();

	if (fork() == 0) {
		sleep_ms(100);
		kill(parent, signo);
		_exit(0);
	}
}

static void run_pause(void)
{
	handle(SIGTERM, 0);
	send_late(SIGTERM);
	pause();
	say("signal", handled);
	handle(SIGALRM, 0);
	alarm(1);
	pause();
	say("signal", handled);
}

static void run_interruption(void)
{
	char byte;

	handle(SIGUSR1, 0);
	send_late(SIGUSR1);
	say("left", (long)sleep(1));
	handled = 0;
	send_late(SIGUSR1);
	if (!pipe(ends))
		say("read", read(ends[0], &byte, 1));
	handle(SIGUSR1, SA_RESTART);
	while (wait(NULL) > 0)
		;
	send_late(SIGUSR1);
	handled = 0;
	wait(NULL);
	say("restarted", handled);
}

static void run_suspend(void)
{
	sigset_t set = set_of(SIGUSR1), none;
	struct timespec limit = {1, 0};

	sigemptyset(&none);
	sigprocmask(SIG_BLOCK, &set, NULL);
	handle(SIGUSR1, 0);
	send_late(SIGUSR1);
	sigsuspend(&none);
	say("suspended", handled);
	send_late(SIGUSR1);
	say("poll", ppoll(NULL, 0, &limit, &none));
	send_late(SIGUSR1);
	say("epoll", epoll_pwait(epoll_create1(0), (struct epoll_event[1]){{0}}, 1, 1000, &none));
}

static void run_signal_wait(void)
{
	sigset_t set = set_of(SIGUSR2);
	const struct timespec limit = {0, 20 * MS};
	struct signalfd_siginfo info;
	int signo = 0, fd;

	sigprocmask(SIG_BLOCK, &set, NULL);
	say("timed out", sigtimedwait(&set, NULL, &limit) < 0 && errno == EAGAIN);
	send_late(SIGUSR2);
	say("waited", sigwait(&set, &signo));
	send_late(SIGUSR2);
	say("waited", sigwaitinfo(&set, NULL));
	fd = signalfd(-1, &set, 0);
	send_late(SIGUSR2);
	say("read", read(fd, &info, sizeof(info)) == sizeof(info));
	say("signal", (long)info.ssi_signo);
}

/* --- timers --- */

static void on_thread(union sigval value)
{
	say("thread", value.sival_int);
}

static void run_timer(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_thread};
	const struct itimerspec period = {{0, 100 * MS}, {0, 100 * MS}};
	sigset_t set = set_of(SIGRTMIN);
	siginfo_t info;
	timer_t timer;

	event.sigev_value.sival_int = 17;
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &period, NULL);
	sleep_ms(350);
	timer_delete(timer);
	event = (struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
	event.sigev_value.sival_int = 18;
	sigprocmask(SIG_BLOCK, &set, NULL);
	timer_create(CLOCK_REALTIME, &event, &timer);
	timer_settime(timer, 0, &period, NULL);
	sigwaitinfo(&set, &info);
	say("value", info.si_value.sival_int);
}

/* --- children --- */

static void run_children(void)
{
	siginfo_t info = {0};
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		sleep_ms(100);
		_exit(3);
	}
	say("nobody", waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG));
	say("waited", waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
	say("status", info.si_status);
	say("reaped", wait3(&status, 0, NULL) == pid);
	say("status", WEXITSTATUS(status));
	say("none", waitid(P_ALL, 0, &info, WEXITED) < 0 && errno == ECHILD);
}

int main(int argc, char **argv)
{
	static const struct mode modes[] = {
		{"big_pipe", run_big_pipe},
		{"big_socket", run_big_socket},
		{"receive_all", run_receive_all},
		{"messages", run_messages},
		{"move", run_move},
		{"connect", run_connect},
		{"event", run_event},
		{"file_locks", run_file_locks},
		{"queues", run_queues},
		{"message_queue", run_message_queue},
		{"futex", run_futex},
		{"pause", run_pause},
		{"interruption", run_interruption},
		{"suspend", run_suspend},
		{"signal_wait", run_signal_wait},
		{"timer", run_timer},
		{"children", run_children},
	};

	return run_mode(modes, RN_TEST_COUNT(modes), argc, argv);
}
