#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/diag.h"
#include "base/mem.h"
#include "base/output.h"
#include "base/rng.h"

START_TEST(log2_ceil_is_the_smallest_that_holds)
{
	ck_assert_uint_eq(rn_log2_ceil(0), 0);
	ck_assert_uint_eq(rn_log2_ceil(1), 0);
	for (unsigned l = 1; l < 63; l++) {
		uint64_t power = UINT64_C(1) << l;

		ck_assert_uint_eq(rn_log2_ceil(power), l);
		ck_assert_uint_eq(rn_log2_ceil(power + 1), l + 1);
		ck_assert(rn_is_pow2(power));
		ck_assert(!rn_is_pow2(power + 1));
	}
	ck_assert_uint_eq(rn_div_ceil(UINT64_MAX, 2), UINT64_C(1) << 63);
}
END_TEST

START_TEST(byte_order_works_on_unaligned_bytes)
{
	uint8_t bytes[9] = {0};

	rn_put_be32(bytes + 1, 0x01020304);
	ck_assert_mem_eq(bytes, "\0\1\2\3\4", 5);
	ck_assert_uint_eq(rn_get_be32(bytes + 1), 0x01020304);
	ck_assert_uint_eq(rn_get_le32(bytes + 1), 0x04030201);
	rn_put_le64(bytes + 1, UINT64_C(0x0102030405060708));
	ck_assert_uint_eq(rn_get_be64(bytes + 1), UINT64_C(0x0807060504030201));
	ck_assert_uint_eq(rn_get_be16(bytes + 1), 0x0807);
}
END_TEST

START_TEST(same_seed_and_name_give_the_same_numbers)
{
	struct rn_rng a, b, other_name, other_seed;

	rn_rng_init(&a, 7, "host0.nic0.sched");
	rn_rng_init(&b, 7, "host0.nic0.sched");
	rn_rng_init(&other_name, 7, "host0.nic0.dma");
	rn_rng_init(&other_seed, 8, "host0.nic0.sched");
	for (unsigned i = 0; i < 100; i++) {
		uint64_t v = rn_rng_next(&a);

		ck_assert_uint_eq(v, rn_rng_next(&b));
		ck_assert_uint_ne(v, rn_rng_next(&other_name));
		ck_assert_uint_ne(v, rn_rng_next(&other_seed));
	}
}
END_TEST

START_TEST(below_is_uniform_and_below_its_bound)
{
	struct rn_rng rng;
	unsigned counts[10] = {0};

	rn_rng_init(&rng, 1, "below");
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t v = rn_rng_below(&rng, 10);

		ck_assert_uint_lt(v, 10);
		counts[v]++;
	}
	/* Six standard deviations of a binomial (100000, 1/10) are 569. */
	for (unsigned i = 0; i < 10; i++)
		ck_assert_uint_le((unsigned)abs((int)counts[i] - 10000), 569);
	ck_assert_uint_eq(rn_rng_below(&rng, 1), 0);
	for (unsigned i = 0; i < 100; i++)
		ck_assert_uint_lt(rn_rng_below(&rng, UINT64_MAX), UINT64_MAX);
}
END_TEST

START_TEST(diagnostics_are_kept_in_order_with_their_position)
{
	struct rn_diag *diag = rn_diag_new();

	rn_diag_add(diag, "a.yaml", 3, 7, "tags: %d is not %s", 0, "legal");
	rn_diag_add(diag, "a.yaml", 3, 0, "no column");
	rn_diag_add(diag, "a.yaml", 0, 0, "no line");
	rn_diag_add(diag, NULL, 0, 0, "no file");
	ck_assert_uint_eq(rn_diag_count(diag), 4);
	ck_assert_str_eq(rn_diag_message(diag, 0), "a.yaml:3:7: tags: 0 is not legal");
	ck_assert_str_eq(rn_diag_message(diag, 1), "a.yaml:3: no column");
	ck_assert_str_eq(rn_diag_message(diag, 2), "a.yaml: no line");
	ck_assert_str_eq(rn_diag_message(diag, 3), "no file");
	ck_assert_ptr_null(rn_diag_message(diag, 4));

	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	rn_diag_print(diag, out);
	fclose(out);
	ck_assert_str_eq(text, "a.yaml:3:7: tags: 0 is not legal\na.yaml:3: no column\n"
			       "a.yaml: no line\nno file\n");
	free(text);
	rn_diag_free(diag);
}
END_TEST

START_TEST(memory_is_zeroed_and_strings_are_copied)
{
	uint8_t *mem = rn_calloc(100, 3);

	for (unsigned i = 0; i < 300; i++)
		ck_assert_uint_eq(mem[i], 0);
	mem = rn_reallocarray(mem, 1000, 3);
	mem[2999] = 1;
	free(mem);

	char *text = rn_asprintf("%s.%u", "host", 3U);
	char *copy = rn_strdup(text);

	text[0] = 'x';
	ck_assert_str_eq(copy, "host.3");
	free(text);
	free(copy);
	free(rn_calloc(0, 0));
}
END_TEST

START_TEST(an_impossible_size_ends_the_simulator)
{
	rn_reallocarray(NULL, SIZE_MAX / 2, 3);
}
END_TEST

START_TEST(a_failed_assertion_aborts)
{
	rn_assert_context("host0.nic0.dma", 12);
	RN_ASSERT(1 + 1 == 3);
}
END_TEST

/* A fresh folder, which the test leaves to be removed by remove_folder(). */
static void make_folder(char folder[32])
{
	strcpy(folder, "/tmp/rnicsim-unit-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static char *read_file(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = rn_calloc(1, 256);

	ck_assert_ptr_nonnull(file);
	ck_assert_uint_lt(fread(text, 1, 255, file), 255);
	fclose(file);
	return text;
}

START_TEST(output_keeps_the_errno_of_the_first_failed_write)
{
	char *message = NULL;
	struct rn_output *output = rn_output_open("/dev/full", "a log", &message);

	ck_assert_ptr_nonnull(output);
	for (unsigned i = 0; i < 1000000; i++)
		fputs("text\n", rn_output_stream(output));
	errno = EINVAL;
	ck_assert_int_eq(rn_output_close(output, &message), ENOSPC);
	ck_assert_str_eq(message, "/dev/full: cannot write a log: No space left on device");
	free(message);
}
END_TEST

START_TEST(output_beyond_the_limit_of_a_file_is_an_error)
{
	const struct rlimit limit = {4096, 4096};
	char folder[32], *message = NULL;
	struct rn_output *output;
	char *path;

	make_folder(folder);
	path = rn_asprintf("%s/file", folder);
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	output = rn_output_open(path, "a log", &message);
	for (unsigned i = 0; i < 4097; i++)
		fputc('x', rn_output_stream(output));
	ck_assert_int_eq(rn_output_close(output, NULL), EFBIG);
	unlink(path);
	rmdir(folder);
	free(path);
}
END_TEST

START_TEST(output_that_cannot_be_opened_says_why)
{
	char *message = NULL;

	ck_assert_ptr_null(rn_output_open("/no/such/file", "a log", &message));
	ck_assert_str_eq(message, "/no/such/file: cannot write a log: No such file or directory");
	free(message);
}
END_TEST

static void write_whole(const char *path, const char *text, bool keep)
{
	char *message = NULL;
	struct rn_whole_file *file = rn_whole_file_new(path, "a report", &message);
	FILE *stream;

	ck_assert_ptr_nonnull(file);
	stream = fopen(rn_whole_file_path(file), "w");
	fputs(text, stream);
	fclose(stream);
	ck_assert_int_eq(rn_whole_file_finish(file, keep, &message), 0);
	ck_assert_ptr_null(message);
}

START_TEST(whole_file_is_put_in_its_place_or_forgotten)
{
	char folder[32], *path, *text;
	struct stat st;

	make_folder(folder);
	path = rn_asprintf("%s/file", folder);
	write_whole(path, "first", true);
	write_whole(path, "second", false);
	text = read_file(path);
	ck_assert_str_eq(text, "first");
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0400, 0400);
	free(text);
	unlink(path);
	ck_assert_int_eq(rmdir(folder), 0); /* nothing else is left there */
	free(path);
}
END_TEST

START_TEST(whole_file_leaves_links_and_devices_what_they_are)
{
	char folder[32], *link, *target, *text;
	struct stat st;

	make_folder(folder);
	link = rn_asprintf("%s/link", folder);
	target = rn_asprintf("%s/target", folder);
	ck_assert_int_eq(symlink("target", link), 0);
	for (unsigned i = 0; i < 2; i++) {
		write_whole(link, i ? "again" : "once", true);
		ck_assert_int_eq(lstat(link, &st), 0);
		ck_assert(S_ISLNK(st.st_mode));
		text = read_file(target);
		ck_assert_str_eq(text, i ? "again" : "once");
		free(text);
	}
	write_whole("/dev/null", "text", true);
	ck_assert_int_eq(stat("/dev/null", &st), 0);
	ck_assert(S_ISCHR(st.st_mode));
	unlink(link);
	unlink(target);
	ck_assert_int_eq(rmdir(folder), 0);
	free(link);
	free(target);
}
END_TEST

START_TEST(whole_file_on_a_full_device_is_an_error)
{
	char *message = NULL;
	struct rn_whole_file *file = rn_whole_file_new("/dev/full", "a report", &message);
	FILE *stream = fopen(rn_whole_file_path(file), "w");

	fputs("text", stream);
	fclose(stream);
	ck_assert_int_eq(rn_whole_file_finish(file, true, &message), ENOSPC);
	ck_assert_str_eq(message, "/dev/full: cannot write a report: No space left on device");
	free(message);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base");
	TCase *tcase = tcase_create("base");

	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, log2_ceil_is_the_smallest_that_holds);
	tcase_add_test(tcase, byte_order_works_on_unaligned_bytes);
	tcase_add_test(tcase, same_seed_and_name_give_the_same_numbers);
	tcase_add_test(tcase, below_is_uniform_and_below_its_bound);
	tcase_add_test(tcase, diagnostics_are_kept_in_order_with_their_position);
	tcase_add_test(tcase, memory_is_zeroed_and_strings_are_copied);
	tcase_add_test(tcase, output_keeps_the_errno_of_the_first_failed_write);
	tcase_add_test(tcase, output_beyond_the_limit_of_a_file_is_an_error);
	tcase_add_test(tcase, output_that_cannot_be_opened_says_why);
	tcase_add_test(tcase, whole_file_is_put_in_its_place_or_forgotten);
	tcase_add_test(tcase, whole_file_leaves_links_and_devices_what_they_are);
	tcase_add_test(tcase, whole_file_on_a_full_device_is_an_error);
	tcase_add_exit_test(tcase, an_impossible_size_ends_the_simulator, EXIT_FAILURE);
	tcase_add_test_raise_signal(tcase, a_failed_assertion_aborts, SIGABRT);

	SRunner *runner = srunner_create(suite);

	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
