/*
 * Programs whose runtime does not use the C library for system calls, clocks and threads: what they do then is not seen
 * here, although they are linked against it. Go's linker leaves a note in each of its programs.
 */
#include <elf.h>
#include <link.h>
#include <string.h>

#include "preload/virtual.h"

#define GO_NAME "Go"
#define NOTE_ALIGN 4u

static size_t padded(size_t bytes)
{
	return (bytes + NOTE_ALIGN - 1) / NOTE_ALIGN * NOTE_ALIGN;
}

static bool has_note_of_go(const char *note, size_t bytes)
{
	while (bytes >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) header;
		size_t whole;

		memcpy(&header, note, sizeof(header));
		whole = sizeof(header) + padded(header.n_namesz) + padded(header.n_descsz);
		if (whole > bytes)
			return false;
		/* Its name is padded into its size. */
		if (header.n_namesz >= sizeof(GO_NAME) &&
		    !memcmp(note + sizeof(header), GO_NAME, sizeof(GO_NAME)))
			return true;
		note += whole;
		bytes -= whole;
	}
	return false;
}

/* The first object is the program. */
static int look_at_program(struct dl_phdr_info *object, size_t bytes, void *result)
{
	bool *is_bare = result;

	(void)bytes;
	for (unsigned n = 0; n < object->dlpi_phnum; n++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[n];

		if (part->p_type == PT_NOTE)
			*is_bare |= has_note_of_go(
				(const char *)(uintptr_t)(object->dlpi_addr + part->p_vaddr),
				part->p_memsz);
	}
	return 1;
}

bool rn_program_is_bare(void)
{
	bool is_bare = false;

	dl_iterate_phdr(look_at_program, &is_bare);
	return is_bare;
}
