#include "settle.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TCP_LISTEN 0x0a
#define MAX_LISTENERS 1024

/* Inodes of all listening TCP sockets in @path (/proc/net/tcp or tcp6). */
static unsigned read_listeners(const char *path, unsigned long *inode, unsigned room)
{
	FILE *file = fopen(path, "re");
	char line[512];
	unsigned count = 0;

	while (file && count < room && fgets(line, sizeof(line), file)) {
		unsigned state;
		unsigned long found;

		if (sscanf(line, " %*u: %*s %*s %x %*s %*s %*s %*u %*u %lu", &state, &found) == 2 &&
		    state == TCP_LISTEN)
			inode[count++] = found;
	}
	if (file)
		fclose(file);
	return count;
}

static bool is_among(unsigned long value, const unsigned long *list, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (list[i] == value)
			return true;
	return false;
}

static bool has_listener(const char *pid, const unsigned long *inode, unsigned count)
{
	char path[320], link[64];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir))) {
		unsigned long socket;
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);

		if (n <= 0)
			continue;
		link[n] = '\0';
		found = sscanf(link, "socket:[%lu]", &socket) == 1 &&
			is_among(socket, inode, count);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* State letter of process @pid when it is of @group, else 0. */
static char state_in_group(const char *pid, pid_t group)
{
	char path[320], text[512];
	const char *behind_name;
	char state;
	int pgrp;
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = '\0';
	behind_name = strrchr(text, ')');
	if (!behind_name || sscanf(behind_name + 1, " %c %*d %d", &state, &pgrp) != 2 ||
	    pgrp != group)
		return 0;
	return state;
}

enum rn_settle rn_settle_look(pid_t group)
{
	static unsigned long inode[MAX_LISTENERS];
	enum rn_settle result = RN_SETTLE_GONE;
	unsigned listeners = read_listeners("/proc/net/tcp", inode, MAX_LISTENERS);
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	listeners += read_listeners("/proc/net/tcp6", inode + listeners, MAX_LISTENERS - listeners);
	while (proc && (entry = readdir(proc))) {
		char state;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		state = state_in_group(entry->d_name, group);
		if (!state || state == 'Z' || state == 'X')
			continue;
		if (has_listener(entry->d_name, inode, listeners)) {
			result = RN_SETTLE_LISTENING;
			break;
		}
		if (state != 'S')
			result = RN_SETTLE_BUSY;
		else if (result == RN_SETTLE_GONE)
			result = RN_SETTLE_SLEEPING;
	}
	if (proc)
		closedir(proc);
	return result;
}
