/* Runs one Check suite of one case and gives the exit status. */
#ifndef RN_TEST_RUN_SUITE_H
#define RN_TEST_RUN_SUITE_H

#include <check.h>
#include <stdlib.h>

static inline int run_suite(TCase *tcase, const char *name)
{
	Suite *suite = suite_create(name);

	suite_add_tcase(suite, tcase);

	SRunner *runner = srunner_create(suite);

	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
