#include "preload/tsc/elf.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "preload/tsc/raw.h"

#define PATH_BYTES 4096

/* Encodings of .eh_frame (LSB 10.5): what every linker writes. */
#define PE_UDATA4 0x03
#define PE_PCREL_SDATA4 0x1b
#define PE_DATAREL_SDATA4 0x3b

/* --- the file --- */

/* @bytes at @offset of the file; NULL: it has not so many. */
static const void *at_offset(const struct rn_elf *elf, uint64_t offset, uint64_t bytes)
{
	return offset <= elf->bytes && bytes <= elf->bytes - offset ? elf->file + offset : NULL;
}

static const Elf64_Ehdr *header(const struct rn_elf *elf)
{
	return (const Elf64_Ehdr *)elf->file;
}

static const Elf64_Phdr *segment(const struct rn_elf *elf, unsigned n)
{
	return n < header(elf)->e_phnum
		       ? at_offset(elf, header(elf)->e_phoff + n * sizeof(Elf64_Phdr),
				   sizeof(Elf64_Phdr))
		       : NULL;
}

/* Like at_offset(), for an address in the file. */
static const uint8_t *at_address(const struct rn_elf *elf, uint64_t address, uint64_t bytes)
{
	const Elf64_Phdr *load;

	for (unsigned n = 0; (load = segment(elf, n)); n++)
		if (load->p_type == PT_LOAD && address >= load->p_vaddr &&
		    address - load->p_vaddr < load->p_filesz &&
		    bytes <= load->p_filesz - (address - load->p_vaddr))
			return at_offset(elf, load->p_offset + (address - load->p_vaddr), bytes);
	return NULL;
}

static bool find_bias(struct rn_elf *elf, const struct rn_map *map)
{
	const Elf64_Phdr *load;

	for (unsigned n = 0; (load = segment(elf, n)); n++) {
		const uint64_t from = load->p_offset & ~(uint64_t)4095;

		if (load->p_type != PT_LOAD || !(load->p_flags & PF_X) || map->offset < from ||
		    map->offset >= load->p_offset + load->p_filesz)
			continue;
		elf->bias = map->start - (load->p_vaddr - load->p_offset + map->offset);
		return true;
	}
	return false;
}

static bool is_object(const struct rn_elf *elf)
{
	const Elf64_Ehdr *head = at_offset(elf, 0, sizeof(*head));

	return head && !memcmp(head->e_ident, ELFMAG, SELFMAG) &&
	       head->e_ident[EI_CLASS] == ELFCLASS64 && head->e_machine == EM_X86_64 &&
	       head->e_phentsize == sizeof(Elf64_Phdr);
}

static bool is_mapped_file(long fd, const struct rn_map *map, struct stat *status)
{
	if (rn_raw_call(SYS_fstat, fd, (long)status, 0, 0, 0, 0) || !S_ISREG(status->st_mode) ||
	    status->st_size <= 0)
		return false;
	return status->st_ino == map->inode;
}

static const uint8_t *map_file(const struct rn_map *map, size_t *bytes)
{
	const char *end = strchr(map->path, '\n');
	char path[PATH_BYTES];
	struct stat status;
	long fd, at = -1;

	if (*map->path != '/' || !end || end - map->path >= PATH_BYTES)
		return NULL;
	memcpy(path, map->path, (size_t)(end - map->path));
	path[end - map->path] = 0;
	fd = rn_raw_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0, 0,
			 0);
	if (fd < 0)
		return NULL;
	if (is_mapped_file(fd, map, &status))
		at = rn_raw_call(SYS_mmap, 0, status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	rn_raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
	*bytes = (size_t)status.st_size;
	return at < 0 ? NULL : (const uint8_t *)at;
}

bool rn_elf_open(struct rn_elf *elf, const struct rn_map *map)
{
	*elf = (struct rn_elf){0};
	elf->file = map_file(map, &elf->bytes);
	if (elf->file && is_object(elf) && find_bias(elf, map))
		return true;
	rn_elf_close(elf);
	return false;
}

void rn_elf_close(struct rn_elf *elf)
{
	rn_raw_free((void *)(uintptr_t)elf->file, elf->bytes);
	elf->file = NULL;
}

/* --- .eh_frame_hdr: a table of (function, its entry of .eh_frame), sorted; addresses are relative to the header --- */

struct row {
	int32_t function, entry;
};

struct index {
	uint64_t address; /* of the header */
	const struct row *row;
	uint32_t rows;
};

static bool find_index(const struct rn_elf *elf, struct index *index)
{
	const Elf64_Phdr *phdr;
	const uint8_t *head;

	for (unsigned n = 0; (phdr = segment(elf, n)); n++) {
		if (phdr->p_type != PT_GNU_EH_FRAME)
			continue;
		head = at_offset(elf, phdr->p_offset, 12);
		if (!head || head[0] != 1 || head[2] != PE_UDATA4 || head[3] != PE_DATAREL_SDATA4)
			return false;
		index->address = phdr->p_vaddr;
		memcpy(&index->rows, head + 8, sizeof(index->rows));
		index->row = at_offset(elf, phdr->p_offset + 12,
				       index->rows * (uint64_t)sizeof(struct row));
		return index->row && index->rows;
	}
	return false;
}

/* The last row at or before @address; NULL none. */
static const struct row *find_row(const struct index *index, uint64_t address)
{
	uint32_t low = 0, high = index->rows;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (index->address + (uint64_t)(int64_t)index->row[middle].function <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &index->row[low - 1] : NULL;
}

/* What a common information entry says of its functions: "zPLR" and one byte or more for each letter. */
static bool read_common(const uint8_t *common, const uint8_t *end, bool *has_landing_pads)
{
	const char *letters = (const char *)common + 9;
	const uint8_t *at = memchr(letters, 0, (size_t)(end - common) - 9);
	uint8_t encoding = 0;

	*has_landing_pads = false;
	if (!at || *letters != 'z' || end - at < 6)
		return false;
	at++;
	for (unsigned numbers = 0; numbers < 4; numbers++) /* alignments, register, length */
		while (*at++ & 0x80 && at < end)
			;
	for (letters++; *letters && at < end; letters++) {
		if (*letters == 'P')
			at += (*at & 0x0f) == 0x03 || (*at & 0x0f) == 0x0b ? 5 : 9;
		else if (*letters == 'R')
			encoding = *at++;
		else if (*letters == 'L')
			*has_landing_pads = ++at;
	}
	return encoding == PE_PCREL_SDATA4;
}

static bool read_entry(const struct rn_elf *elf, uint64_t address, struct rn_function *function)
{
	const uint8_t *entry = at_address(elf, address, 16), *common;
	uint32_t length, range;
	int32_t back, start;

	if (!entry)
		return false;
	memcpy(&back, entry + 4, sizeof(back));
	memcpy(&start, entry + 8, sizeof(start));
	memcpy(&range, entry + 12, sizeof(range));
	common = at_address(elf, address + 4 - (uint64_t)(int64_t)back, 32);
	if (!common)
		return false;
	memcpy(&length, common, sizeof(length));
	if (length >= 0xfffffff0 ||
	    !read_common(common,
			 at_address(elf, address + 4 - (uint64_t)(int64_t)back, length + 4)
				 ? common + length + 4
				 : common + 32,
			 &function->has_landing_pads))
		return false;
	function->start = elf->bias + address + 8 + (uint64_t)(int64_t)start;
	function->end = function->start + range;
	return true;
}

static bool function_of_frame(const struct rn_elf *elf, uintptr_t at, struct rn_function *function)
{
	struct index index;
	const struct row *row = find_index(elf, &index) ? find_row(&index, at - elf->bias) : NULL;

	return row && read_entry(elf, index.address + (uint64_t)(int64_t)row->entry, function) &&
	       at >= function->start && at < function->end;
}

/* --- symbols --- */

static const Elf64_Shdr *section(const struct rn_elf *elf, unsigned n)
{
	return n < header(elf)->e_shnum && header(elf)->e_shentsize == sizeof(Elf64_Shdr)
		       ? at_offset(elf, header(elf)->e_shoff + n * sizeof(Elf64_Shdr),
				   sizeof(Elf64_Shdr))
		       : NULL;
}

static bool is_function(const Elf64_Sym *symbol)
{
	const unsigned type = ELF64_ST_TYPE(symbol->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF;
}

static void each_symbol(const struct rn_elf *elf, void (*take)(void *arg, const Elf64_Sym *symbol),
			void *arg)
{
	const Elf64_Shdr *table;

	for (unsigned n = 0; (table = section(elf, n)); n++) {
		const Elf64_Sym *symbol = at_offset(elf, table->sh_offset, table->sh_size);

		if ((table->sh_type != SHT_SYMTAB && table->sh_type != SHT_DYNSYM) || !symbol)
			continue;
		for (uint64_t i = 0; i < table->sh_size / sizeof(*symbol); i++)
			if (is_function(&symbol[i]))
				take(arg, &symbol[i]);
	}
}

struct nearest {
	uint64_t address, start, size, next;
};

static void take_nearest(void *arg, const Elf64_Sym *symbol)
{
	struct nearest *nearest = arg;

	if (symbol->st_value > nearest->address) {
		if (symbol->st_value < nearest->next)
			nearest->next = symbol->st_value;
	} else if (symbol->st_value > nearest->start) {
		nearest->start = symbol->st_value;
		nearest->size = symbol->st_size;
	} else if (symbol->st_value == nearest->start && symbol->st_size > nearest->size) {
		nearest->size = symbol->st_size;
	}
}

static uint64_t section_end(const struct rn_elf *elf, uint64_t address)
{
	const Elf64_Shdr *one;

	for (unsigned n = 0; (one = section(elf, n)); n++)
		if ((one->sh_flags & SHF_EXECINSTR) && address >= one->sh_addr &&
		    address - one->sh_addr < one->sh_size)
			return one->sh_addr + one->sh_size;
	return 0;
}

/* A symbol of unknown size reaches up to the next one. */
static bool function_of_symbol(const struct rn_elf *elf, uintptr_t at, struct rn_function *function)
{
	struct nearest nearest = {.address = at - elf->bias, .next = UINT64_MAX};
	uint64_t end;

	each_symbol(elf, take_nearest, &nearest);
	if (!nearest.start)
		return false;
	end = nearest.size ? nearest.start + nearest.size : section_end(elf, nearest.start);
	if (!nearest.size && end > nearest.next)
		end = nearest.next;
	function->start = elf->bias + nearest.start;
	function->end = elf->bias + end;
	function->has_landing_pads = false;
	return at < function->end;
}

bool rn_elf_function(const struct rn_elf *elf, uintptr_t at, struct rn_function *function)
{
	return function_of_frame(elf, at, function) || function_of_symbol(elf, at, function);
}

struct starts {
	void (*take)(void *arg, uintptr_t at);
	void *arg;
	uintptr_t bias;
};

static void take_start(void *arg, const Elf64_Sym *symbol)
{
	const struct starts *starts = arg;

	starts->take(starts->arg, starts->bias + symbol->st_value);
}

void rn_elf_each_start(const struct rn_elf *elf, void (*take)(void *arg, uintptr_t at), void *arg)
{
	struct starts starts = {take, arg, elf->bias};
	struct index index;
	const uint32_t rows = find_index(elf, &index) ? index.rows : 0;

	take(arg, elf->bias + header(elf)->e_entry);
	for (uint32_t i = 0; i < rows; i++)
		take(arg, elf->bias + index.address + (uint64_t)(int64_t)index.row[i].function);
	each_symbol(elf, take_start, &starts);
}
