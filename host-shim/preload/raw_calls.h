/*
 * The system calls of syscall() that a run answers itself.
 */
#ifndef RN_PRELOAD_RAW_CALLS_H
#define RN_PRELOAD_RAW_CALLS_H

#include <stdbool.h>

/** Call @number with @argument (six) if it is one of them: *@result as of syscall(), and errno. False: it is the system's. */
bool rn_answer_call(long number, const long argument[], long *result);

#endif
