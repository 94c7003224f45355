/*
 * The virtual files of a run, one row each. What programs of a run see below the folders of rn_files_roots is these rows and
 * nothing else, whatever the machine has there.
 */
#ifndef RN_PRELOAD_FILES_TABLE_H
#define RN_PRELOAD_FILES_TABLE_H

#include <stdbool.h>
#include <stdio.h>

struct rn_facts;

enum rn_file_kind {
	RN_FILE_TEXT,
	RN_FILE_LINK,	/* @text is what it points to */
	RN_FILE_FOLDER, /* an empty one */
	RN_FILE_DEVICE, /* a character device: to be seen and opened */
};

struct rn_file {
	/* In the path "@" is the device, "%" its character device, "$" the interface, "#" the index. */
	const char *path;
	enum rn_file_kind kind;
	/* The content: a fixed one, with the same signs, or printed (false: this index has no such file). */
	const char *text;
	bool (*print)(FILE *out, const struct rn_facts *facts, unsigned index);
	/* How many there are; NULL: one. */
	unsigned (*count)(const struct rn_facts *facts);
	unsigned major, minor; /* of a device */
};

extern const struct rn_file rn_files_table[];
extern const unsigned rn_files_rows;

/* Folders (or files) that are virtual as a whole; NULL ends the list. */
extern const char *const rn_files_roots[];

#endif
