/* incast_queue.c — reads the backlog of a queueing discipline, and TCP's retransmissions, from the kernel. */
#include "cli/comm/incast/incast_queue.h"

#include <errno.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct ask {
	struct nlmsghdr head;
	struct tcmsg tc;
};

/* Find an attribute in n bytes of attributes; NULL: not found. */
static const struct rtattr *find_attribute(const struct rtattr *a, size_t n, unsigned short type)
{
	for (; n >= sizeof *a && a->rta_len >= sizeof *a && a->rta_len <= n;) {
		const size_t step = RTA_ALIGN(a->rta_len);

		if ((a->rta_type & NLA_TYPE_MASK) == type)
			return a;
		if (step > n)
			return NULL;
		n -= step;
		a = (const struct rtattr *)(const void *)((const char *)a + step);
	}
	return NULL;
}

static const void *payload(const struct rtattr *a)
{
	return (const char *)a + RTA_LENGTH(0);
}

/* Read the statistics from the kernel's reply. */
static gpul_status parse_answer(const struct nlmsghdr *head, struct incast_queue *out, gpul_error *err)
{
	const char *at = (const char *)head + NLMSG_LENGTH(sizeof(struct tcmsg));
	const size_t n = head->nlmsg_len - NLMSG_LENGTH(sizeof(struct tcmsg));
	const struct rtattr *stats = find_attribute((const struct rtattr *)(const void *)at, n, TCA_STATS2);
	const struct rtattr *queue = stats ? find_attribute(payload(stats), stats->rta_len - RTA_LENGTH(0), TCA_STATS_QUEUE) : NULL;
	struct gnet_stats_queue q;

	if (!queue || queue->rta_len < RTA_LENGTH(sizeof q))
		return gpul_fail(err, GPUL_ESYS, 0, "the kernel reports no statistics of the token bucket");
	memcpy(&q, payload(queue), sizeof q);
	*out = (struct incast_queue){ .backlog = q.backlog, .drops = q.drops };
	return GPUL_OK;
}

gpul_status incast_queue_read(int fd, int device, struct incast_queue *out, gpul_error *err)
{
	const struct ask ask = { .head = { .nlmsg_len = sizeof ask, .nlmsg_type = RTM_GETQDISC, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ECHO },
				 .tc = { .tcm_family = AF_UNSPEC, .tcm_ifindex = device, .tcm_parent = TC_H_ROOT } };
	union {
		struct nlmsghdr head;
		char bytes[8192];
	} answer;
	ssize_t n;

	if (send(fd, &ask, sizeof ask, 0) != sizeof ask)
		return gpul_fail(err, GPUL_ESYS, errno, "cannot read the statistics of the queue over netlink (RTM_GETQDISC): %s",
				 strerror(errno));
	do
		n = recv(fd, &answer, sizeof answer, 0);
	while (n < 0 && errno == EINTR);
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(struct tcmsg)) || answer.head.nlmsg_len > (size_t)n ||
	    answer.head.nlmsg_type != RTM_NEWQDISC) {
		const bool refused = n >= (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)) && answer.head.nlmsg_type == NLMSG_ERROR;
		const int error = refused ? -((const struct nlmsgerr *)NLMSG_DATA(&answer.head))->error : n < 0 ? errno : EPROTO;

		return gpul_fail(err, GPUL_ESYS, error, "cannot read the statistics of the queue over netlink (RTM_GETQDISC): %s",
				 strerror(error));
	}
	return parse_answer(&answer.head, out, err);
}

/* /proc/net/snmp has two lines for TCP: the first has the names of counters, the second their values in the same order. */
uint64_t incast_retransmissions(void)
{
	FILE *f = fopen("/proc/self/net/snmp", "re");
	char names[1024], values[1024];
	uint64_t found = 0;

	while (f && fgets(names, sizeof names, f)) {
		char *name_rest = NULL, *value_rest = NULL;
		const char *name, *value;

		if (strncmp(names, "Tcp:", 4) || !fgets(values, sizeof values, f))
			continue;
		name = strtok_r(names, " \n", &name_rest);
		value = strtok_r(values, " \n", &value_rest);
		for (; name && value; name = strtok_r(NULL, " \n", &name_rest), value = strtok_r(NULL, " \n", &value_rest))
			if (!strcmp(name, "RetransSegs"))
				found = strtoull(value, NULL, 10);
	}
	if (f)
		(void)fclose(f);
	return found;
}
