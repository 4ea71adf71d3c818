/* hostlist.c — parses lists of hosts and host files. */
#include "comm/bootstrap/agents/hostlist.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The name of a host must not start with '-': the agent would parse it as an option. */
static gpul_status add_host(gpul_comm_hosts *hosts, const char *name, size_t n_name, const char *number, gpul_error *err)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@:%";
	gpul_comm_host *h = &hosts->at[hosts->n];
	char *end = NULL;
	const long n = number ? strtol(number, &end, 10) : 1;

	if (n_name == 0 || n_name >= sizeof h->name || name[0] == '-' || strspn(name, good) < n_name)
		return gpul_fail(err, GPUL_EINVAL, 0, "invalid host name '%.*s'", n_name < 60 ? (int)n_name : 60, name);
	if (number && (end == number || *end || n < 1 || n > GPUL_COMM_MAX_RANKS))
		return gpul_fail(err, GPUL_EINVAL, 0, "invalid number of ranks '%.20s' for host %.*s: expected 1 to %d", number,
				 (int)n_name, name, GPUL_COMM_MAX_RANKS);
	for (int i = 0; i < hosts->n; i++)
		if (strlen(hosts->at[i].name) == n_name && !memcmp(hosts->at[i].name, name, n_name))
			return gpul_fail(err, GPUL_EINVAL, 0, "host %.*s is listed twice", (int)n_name, name);
	if (hosts->n_ranks + n > GPUL_COMM_MAX_RANKS)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "the list of hosts has more than %d ranks, which is the limit",
				 GPUL_COMM_MAX_RANKS);
	memcpy(h->name, name, n_name);
	h->name[n_name] = '\0';
	h->n_ranks = (int)n;
	hosts->n_ranks += (int)n;
	hosts->n++;
	return GPUL_OK;
}

/* Add an entry such as "node1", "node1:2", "fd00::1" or "[fd00::1]:2". */
static gpul_status add_entry(gpul_comm_hosts *hosts, const char *entry, gpul_error *err)
{
	const char *first = strchr(entry, ':'), *last = strrchr(entry, ':'), *bracket = strchr(entry, ']');

	if (entry[0] == '[' && bracket && (!bracket[1] || bracket[1] == ':'))
		return add_host(hosts, entry + 1, (size_t)(bracket - entry - 1), bracket[1] ? bracket + 2 : NULL, err);
	if (first && first == last)
		return add_host(hosts, entry, (size_t)(first - entry), first + 1, err);
	return add_host(hosts, entry, strlen(entry), NULL, err);
}

gpul_status gpul_comm_hosts_parse(const char *text, gpul_comm_hosts *out, gpul_error *err)
{
	gpul_comm_hosts hosts = { .n = 0 };
	char *copy = strdup(text), *rest = copy, *entry;
	gpul_status st = copy ? GPUL_OK : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a list of hosts");

	while (!st && (entry = strsep(&rest, ",")))
		st = add_entry(&hosts, entry, err);
	free(copy);
	if (!st)
		*out = hosts;
	return st;
}

/* Add the host of one line of a host file; the line is without its newline. */
static gpul_status add_line(gpul_comm_hosts *hosts, char *line, gpul_error *err)
{
	const char *name, *slots, *more;

	line[strcspn(line, "#\r\n")] = '\0';
	name = strtok_r(line, " \t", &line);
	if (!name)
		return GPUL_OK;
	slots = strtok_r(NULL, " \t", &line);
	more = strtok_r(NULL, " \t", &line);
	if (!slots)
		return add_entry(hosts, name, err);
	if (strncmp(slots, "slots=", 6) != 0 || more)
		return gpul_fail(err, GPUL_EINVAL, 0, "invalid line '%.60s': expected HOST slots=N", more ? more : slots);
	return add_host(hosts, name, strlen(name), slots + 6, err);
}

gpul_status gpul_comm_hosts_read(const char *path, gpul_comm_hosts *out, gpul_error *err)
{
	gpul_comm_hosts hosts = { .n = 0 };
	FILE *f = fopen(path, "re");
	char line[512];
	gpul_error why = { 0 };
	gpul_status st = f ? GPUL_OK : gpul_fail(err, GPUL_ESYS, errno, "%.200s: %s", path, strerror(errno));
	int n = 0;

	while (!st && fgets(line, sizeof line, f)) {
		n++;
		if (add_line(&hosts, line, &why))
			st = gpul_fail(err, why.status, 0, "%.120s, line %d: %.100s", path, n, why.text);
	}
	if (!st && hosts.n == 0)
		st = gpul_fail(err, GPUL_EINVAL, 0, "%.200s contains no host: expected lines such as HOST slots=N", path);
	if (f)
		fclose(f);
	if (!st)
		*out = hosts;
	return st;
}
