/* address.c — parses and prints addresses. */
#include "rdma/oob/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

static gpul_status parse_port(const char *text, const char *port, unsigned *out, gpul_error *err)
{
	unsigned value = 0;
	size_t n = strspn(port, "0123456789");

	for (size_t i = 0; i < n && value <= 65535; i++)
		value = value * 10 + (unsigned)(port[i] - '0');
	if (n == 0 || port[n] || value > 65535)
		return gpul_fail(err, GPUL_EINVAL, 0, "address '%.80s': the port '%.20s' is not a number from 0 to 65535", text, port);
	*out = value;
	return GPUL_OK;
}

static gpul_status copy_part(const char *text, const char *what, const char *part, size_t n, char *out, size_t room, gpul_error *err)
{
	if (n >= room)
		return gpul_fail(err, GPUL_EINVAL, 0, "address '%.80s...': the %s has %zu characters, but the limit is %zu", text, what, n,
				 room - 1);
	memcpy(out, part, n);
	out[n] = '\0';
	return GPUL_OK;
}

gpul_status gpul_rdma_address_parse(const char *text, gpul_rdma_address *out, gpul_error *err)
{
	gpul_rdma_address a = { .port = GPUL_RDMA_DEFAULT_PORT };
	const char *host = text, *colon = strchr(text, ':');
	size_t n = strlen(text);
	gpul_status st = GPUL_OK;

	if (strncmp(text, "unix:", 5) == 0) {
		if (!text[5])
			return gpul_fail(err, GPUL_EINVAL, 0, "address 'unix:': the path is missing");
		st = copy_part(text, "path", text + 5, n - 5, a.path, sizeof a.path, err);
	} else if (text[0] == '[') {
		const char *end = strchr(text, ']');

		if (!end || (end[1] && end[1] != ':'))
			return gpul_fail(err, GPUL_EINVAL, 0, "address '%.80s': write an IPv6 address and its port as [ADDRESS]:PORT",
					 text);
		host = text + 1;
		n = (size_t)(end - host);
		if (end[1])
			st = parse_port(text, end + 2, &a.port, err);
	} else if (colon && !strchr(colon + 1, ':')) { /* several colons would be an IPv6 address without a port */
		n = (size_t)(colon - host);
		st = parse_port(text, colon + 1, &a.port, err);
	}
	if (!st && !a.path[0])
		st = copy_part(text, "host", host, n, a.host, sizeof a.host, err);
	if (!st)
		*out = a;
	return st;
}

void gpul_rdma_address_print(const gpul_rdma_address *address, char out[GPUL_RDMA_ADDRESS_BYTES])
{
	bool v6 = strchr(address->host, ':') != NULL;

	if (address->path[0])
		snprintf(out, GPUL_RDMA_ADDRESS_BYTES, "unix:%.58s", address->path);
	else
		snprintf(out, GPUL_RDMA_ADDRESS_BYTES, "%s%.54s%s:%u", v6 ? "[" : "", address->host, v6 ? "]" : "", address->port & 0xffff);
}

void gpul_rdma_sockaddr_print(const struct sockaddr *address, socklen_t address_bytes, char out[GPUL_RDMA_ADDRESS_BYTES])
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_un un;
	} a = { 0 };
	char ip[INET6_ADDRSTRLEN] = "?", zone[16] = "";

	memcpy(&a, address, address_bytes < sizeof a ? address_bytes : sizeof a);
	if (a.any.sa_family == AF_INET) {
		inet_ntop(AF_INET, &a.v4.sin_addr, ip, sizeof ip);
		snprintf(out, GPUL_RDMA_ADDRESS_BYTES, "%.45s:%u", ip, (unsigned)ntohs(a.v4.sin_port));
	} else if (a.any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a.v6.sin6_addr)) {
		inet_ntop(AF_INET, &a.v6.sin6_addr.s6_addr[12], ip, sizeof ip);
		snprintf(out, GPUL_RDMA_ADDRESS_BYTES, "%.45s:%u", ip, (unsigned)ntohs(a.v6.sin6_port));
	} else if (a.any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &a.v6.sin6_addr, ip, sizeof ip);
		if (a.v6.sin6_scope_id)
			snprintf(zone, sizeof zone, "%%%u", (unsigned)a.v6.sin6_scope_id);
		snprintf(out, GPUL_RDMA_ADDRESS_BYTES, "[%.39s%.11s]:%u", ip, zone, (unsigned)ntohs(a.v6.sin6_port));
	} else if (a.any.sa_family == AF_UNIX && address_bytes > offsetof(struct sockaddr_un, sun_path)) {
		snprintf(out, GPUL_RDMA_ADDRESS_BYTES, "unix:%.58s", a.un.sun_path);
	} else {
		snprintf(out, GPUL_RDMA_ADDRESS_BYTES, a.any.sa_family == AF_UNIX ? "unix:" : "?");
	}
}

static void add_sockaddr(gpul_rdma_resolved *r, const void *at, socklen_t n_bytes)
{
	if (r->n == sizeof r->sockaddrs / sizeof r->sockaddrs[0])
		return;
	memcpy(&r->sockaddrs[r->n].at, at, n_bytes);
	r->sockaddrs[r->n++].bytes = n_bytes;
}

gpul_status gpul_rdma_address_resolve(const gpul_rdma_address *address, bool listen, gpul_rdma_resolved *out, gpul_error *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV }, *found;
	char port[8];
	int rc;

	snprintf(port, sizeof port, "%u", address->port & 0xffff);
	if (address->path[0]) {
		struct sockaddr_un un = { .sun_family = AF_UNIX };

		memcpy(un.sun_path, address->path, sizeof un.sun_path);
		out->n = 0;
		add_sockaddr(out, &un, sizeof un);
		return GPUL_OK;
	}
	if (listen && !address->host[0]) {
		struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)address->port) };
		struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)address->port) };

		out->n = 0;
		add_sockaddr(out, &v6, sizeof v6);
		add_sockaddr(out, &v4, sizeof v4);
		return GPUL_OK;
	}
	rc = getaddrinfo(address->host[0] ? address->host : NULL, port, &hints, &found);
	if (rc)
		return gpul_fail(err, GPUL_ESYS, rc == EAI_SYSTEM ? errno : 0, "cannot resolve the host name '%.100s': %s", address->host,
				 rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
	out->n = 0;
	for (const struct addrinfo *a = found; a; a = a->ai_next)
		add_sockaddr(out, a->ai_addr, a->ai_addrlen);
	freeaddrinfo(found);
	return GPUL_OK;
}
