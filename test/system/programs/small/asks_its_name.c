/* Every way to ask what this machine is called; prints what each says. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

static void ask_address(const char *name)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_flags = AI_CANONNAME}, *found;
	char back[64], text[64];

	if (getaddrinfo(name, NULL, &hints, &found))
		return;
	getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof(text), NULL, 0, NI_NUMERICHOST);
	printf("getaddrinfo %s %s\n", found->ai_canonname, text);
	if (!getnameinfo(found->ai_addr, found->ai_addrlen, back, sizeof(back), NULL, 0, 0))
		printf("getnameinfo %s\n", back);
	freeaddrinfo(found);
}

static void ask_entries(const char *name)
{
	struct hostent entry, *found = gethostbyname(name);
	char buffer[1024];
	int error;

	if (!found)
		return;
	printf("gethostbyname %s\n", found->h_name);
	if (!gethostbyname_r(name, &entry, buffer, sizeof(buffer), &found, &error) && found)
		printf("gethostbyname_r %s\n", found->h_name);
	found = gethostbyaddr(found->h_addr_list[0], 4, AF_INET);
	if (found)
		printf("gethostbyaddr %s\n", found->h_name);
}

int main(void)
{
	char name[64] = "", line[64] = "";
	struct utsname names;
	FILE *file = fopen("/proc/sys/kernel/hostname", "r");

	gethostname(name, sizeof(name));
	printf("gethostname %s\n", name);
	uname(&names);
	printf("uname %s\n", names.nodename);
	syscall(SYS_uname, &names);
	printf("SYS_uname %s\n", names.nodename);
	if (file && fgets(line, sizeof(line), file))
		printf("proc %s", line);
	ask_address(name);
	ask_entries(name);
	return 0;
}
