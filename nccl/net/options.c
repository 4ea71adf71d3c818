/* options.c — reads the environment. */
#include "nccl/net/options.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Return the value of a variable; NULL: not set, or empty. */
static const char *text_of(const char *name)
{
	const char *text = secure_getenv(name);

	return text && *text ? text : NULL;
}

static gpul_status read_number(const char *name, int least, int most, int *value, gpul_error *err)
{
	const char *text = text_of(name);
	char *end;
	long number;

	if (!text)
		return GPUL_OK;
	number = strtol(text, &end, 10);
	if (*end || number < least || number > most)
		return gpul_fail(err, GPUL_EINVAL, 0, "%s=%.40s: expected a number from %d to %d", name, text, least, most);
	*value = (int)number;
	return GPUL_OK;
}

gpul_status gpul_net_options_read(gpul_net_options *out, gpul_error *err)
{
	const char *family = text_of("NCCL_SOCKET_FAMILY");
	gpul_net_options o = {
		.provider = text_of("GPULOAD_NET_PROVIDER"),
		.device = text_of("GPULOAD_NET_DEVICE"),
		.secret = text_of("GPULOAD_RDMA_SECRET"),
		.interfaces = text_of("NCCL_SOCKET_IFNAME"),
		.n_qps = 1,
		.lease_ms = 10000,
		.connect_ms = 60000,
	};
	gpul_status st = read_number("GPULOAD_NET_QPS", 1, 16, &o.n_qps, err);

	st = st ? st : read_number("GPULOAD_NET_LEASE_MS", 100, 600000, &o.lease_ms, err);
	st = st ? st : read_number("GPULOAD_NET_CONNECT_MS", 100, 600000, &o.connect_ms, err);
	if (st)
		return st;
	if (family)
		o.family = !strcmp(family, "AF_INET") ? AF_INET : !strcmp(family, "AF_INET6") ? AF_INET6 : 0;
	*out = o;
	return GPUL_OK;
}
