/*
 * Whether a waveform was written whole: the library that writes FST files tells nobody when the disk is full.
 */
#ifndef RN_SYSTEMC_COSIM_FST_CHECK_H
#define RN_SYSTEMC_COSIM_FST_CHECK_H

/**
 * Walk the blocks of the closed FST file @path. 0 when they fill the file from its beginning to its end and one of them has
 * the hierarchy; else an errno: what writing some more to it fails with, or EIO.
 */
int rn_fst_check(const char *path);

struct rn_whole_file;

/** rn_whole_file_finish() of a waveform, which is kept if it is whole. */
int rn_fst_finish(struct rn_whole_file *file, char **message);

#endif
