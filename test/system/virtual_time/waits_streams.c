/* Waits inside the C library's streams, and what a program finds random. */
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "waits.h"

static const char one_line[] = "sleep 1; echo x";

static void run_popen(void)
{
	FILE *stream = popen(one_line, "r");
	char line[16];

	say("line", fgets(line, sizeof(line), stream) && !strcmp(line, "x\n"));
	say("end", !fgets(line, sizeof(line), stream) && feof(stream));
	say("status", pclose(stream));
	stream = popen("sleep 1; exit 3", "r");
	say("status", WEXITSTATUS(pclose(stream)));
}

/* A line that comes in two portions, and then one that is there already. */
static void run_portions(void)
{
	FILE *stream =
		popen("printf one; sleep 1; printf 'two\\nthree\\n'; sleep 1; echo four", "r");
	char line[16], *text = NULL;
	size_t room = 0;

	say("first", fgets(line, sizeof(line), stream) && !strcmp(line, "onetwo\n"));
	say("second", getline(&text, &room, stream));
	say("third", getdelim(&text, &room, '\n', stream));
	say("end", getline(&text, &room, stream));
	pclose(stream);
	free(text);
}

static void run_bytes(void)
{
	FILE *stream = popen("for i in 1 2 3; do sleep 1; printf abcd; done", "r");
	char block[8];

	say("byte", getc(stream));
	say("byte", fgetc(stream));
	say("back", ungetc('z', stream));
	say("block", (long)fread(block, 1, sizeof(block), stream));
	say("block", !memcmp(block, "zcdabcda", sizeof(block)));
	say("byte", getc_unlocked(stream));
	say("block", (long)fread(block, 1, sizeof(block), stream));
	say("end", feof(stream));
	pclose(stream);
}

static void run_scan(void)
{
	FILE *stream = popen("printf 12; sleep 1; printf '34 x'; sleep 1; echo y", "r");
	int number = 0;
	char word[8] = "";

	say("fields", fscanf(stream, "%d", &number));
	say("number", number);
	say("blank", getc(stream));
	say("fields", fscanf(stream, "%7s", word));
	say("word", !strcmp(word, "xy"));
	say("fields", fscanf(stream, "%d", &number));
	pclose(stream);
}

/* Standard input is a pipe. */
static void run_input(void)
{
	int ends[2];
	char word[8];

	if (pipe(ends))
		return;
	if (fork() == 0) {
		sleep_ms(100);
		dprintf(ends[1], "a");
		sleep_ms(100);
		dprintf(ends[1], "word \n");
		_exit(0);
	}
	dup2(ends[0], STDIN_FILENO);
	say("byte", getchar());
	say("fields", scanf("%7s", word));
	wait(NULL);
}

/* More than a pipe holds, to somebody who reads late. */
static void run_full_pipe(void)
{
	static char block[10000];
	FILE *stream = popen("sleep 1; wc -c; sleep 1", "w");

	memset(block, 'x', sizeof(block));
	for (unsigned i = 0; i < 20; i++)
		fwrite(block, 1, sizeof(block), stream);
	say("blocks", ferror(stream));
	for (unsigned i = 0; i < 20000; i++)
		fprintf(stream, "line %05u\n", i);
	say("lines", ferror(stream));
	for (unsigned i = 0; i < 20000; i++)
		putc('y', stream);
	fputs("end", stream);
	say("status", pclose(stream));
}

/* A writer that fills the pipe goes on when a stream has taken what is in it. */
static void run_slow_reader(void)
{
	FILE *stream = popen("seq 1 100000", "r");
	char line[16];
	long lines = 0;

	sleep_ms(1000);
	while (fgets(line, sizeof(line), stream))
		lines++;
	say("lines", lines);
	say("status", pclose(stream));
}

/* Either end of a named pipe waits for the other. */
static void run_fifo(void)
{
	char folder[] = "/tmp/rnicsim-waits-XXXXXX", name[64], line[16] = "";
	FILE *stream;
	int fd;

	snprintf(name, sizeof(name), "%s/fifo", mkdtemp(folder));
	mkfifo(name, 0600);
	if (fork() == 0) {
		sleep_ms(100);
		stream = fopen(name, "w");
		sleep_ms(100);
		fputs("line\n", stream);
		fclose(stream);
		sleep_ms(100);
		fd = open(name, O_RDONLY);
		_exit(read(fd, line, sizeof(line)) == 4 ? 0 : 1);
	}
	stream = fopen(name, "r");
	say("reader", stream != NULL);
	say("line", fgets(line, sizeof(line), stream) != NULL);
	say("end", fgets(line, sizeof(line), stream) == NULL);
	fclose(stream);
	fd = open(name, O_WRONLY);
	say("writer", fd >= 0);
	say("written", write(fd, "text", 4));
	close(fd);
	wait(&fd);
	say("read", fd);
	unlink(name);
	rmdir(folder);
}

static void run_system(void)
{
	say("system", WEXITSTATUS(system("sleep 1; exit 4")));
}

/* --- random numbers and seeds --- */

static void print_file(const char *name)
{
	unsigned value[2] = {0, 0};
	FILE *stream = fopen(name, "r");
	const int fd = open(name, O_RDONLY);

	if (fread(&value[0], sizeof(value[0]), 1, stream) == 1 &&
	    read(fd, &value[1], sizeof(value[1])) == sizeof(value[1]))
		printf("%s %08x %08x\n", name, value[0], value[1]);
	fclose(stream);
	close(fd);
}

static void run_random(void)
{
	char file[] = "/tmp/rnicsim-waits-XXXXXX", folder[] = "/tmp/rnicsim-waits-XXXXXX";
	unsigned value = 0;

	print_file("/dev/urandom");
	print_file("/dev/random");
	if (getrandom(&value, sizeof(value), 0) == sizeof(value))
		printf("getrandom %08x\n", value);
	if (!getentropy(&value, sizeof(value)))
		printf("getentropy %08x\n", value);
	close(mkstemp(file));
	unlink(file);
	if (mkdtemp(folder))
		rmdir(folder);
	printf("names %s %s\n", file, folder);
	fflush(stdout);
	(void)!system("head -c 4 /dev/urandom | od -x");
}

static void run_seeds_of_process(void)
{
	struct timespec now;

	srand48(getpid() * time(NULL));
	say("srand48(pid * time)", lrand48());
	srand((unsigned)getpid());
	say("srand(pid)", rand());
	srandom((unsigned)(time(NULL) ^ getpid()));
	say("srandom(time ^ pid)", random());
	clock_gettime(CLOCK_REALTIME, &now);
	srandom((unsigned)(now.tv_nsec ^ (getpid() << 16)));
	say("srandom(ns ^ pid << 16)", random());
}

/* The program's own choice: exactly these numbers. */
static void run_seeds_of_program(void)
{
	(void)getpid();
	srand48(12345678);
	say("srand48(12345678)", lrand48());
	srand(4000000000u);
	say("srand(4000000000)", rand());
	srandom(1);
	say("srandom(1)", random());
	srand48((long)time(NULL));
	say("srand48(time)", lrand48());
}

int main(int argc, char **argv)
{
	static const struct mode modes[] = {
		{"popen", run_popen},
		{"portions", run_portions},
		{"bytes", run_bytes},
		{"scan", run_scan},
		{"input", run_input},
		{"full_pipe", run_full_pipe},
		{"slow_reader", run_slow_reader},
		{"fifo", run_fifo},
		{"system", run_system},
		{"random", run_random},
		{"seeds_of_process", run_seeds_of_process},
		{"seeds_of_program", run_seeds_of_program},
	};

	return run_mode(modes, RN_TEST_COUNT(modes), argc, argv);
}
