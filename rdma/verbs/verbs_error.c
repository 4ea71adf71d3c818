/* verbs_error.c — messages about failed calls and completions, each with advice on what to check. */
#include "rdma/verbs/verbs_internal.h"

#if GPUL_HAVE_LIBIBVERBS

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* Advice by errno value; for ENOMEM see explain_memory(). */
static const struct {
	int code;
	const char *advice;
} code_advices[] = {
	{ EACCES, "this user is not allowed to open /dev/infiniband/uverbs*: check its permissions" },
	{ EPERM, "this user is not allowed to do this: check the permissions of /dev/infiniband/uverbs*" },
	{ EAGAIN, "the NIC or the kernel has no resources left" },
	{ EFAULT, "the memory is not mapped, or mapped read-only" },
	{ ENODEV, "the NIC was removed or reset: see the kernel's log (dmesg)" },
	{ ENOSYS, "check that the kernel module ib_uverbs is loaded" },
	{ ETIMEDOUT, "the peer's address was not resolved (ARP): check the route, the VLAN and the peer's interface" },
	{ ENETUNREACH, "there is no route to the peer's address: check the address and the GID index" },
	{ EHOSTUNREACH, "there is no route to the peer's address: check the address and the GID index" },
	{ EINVAL, "the NIC or its driver rejects these values" },
	{ EOPNOTSUPP, "the NIC or its driver does not support this" },
};

static const char *code_advice(int code)
{
	for (size_t i = 0; i < sizeof code_advices / sizeof code_advices[0]; i++)
		if (code_advices[i].code == code)
			return code_advices[i].advice;
	return "";
}

/* Explain ENOMEM: "the limit of locked memory is 64 KiB (ulimit -l), 1024 KiB are wanted" */
static void explain_memory(size_t wanted_bytes, char *out, size_t out_bytes)
{
	struct rlimit limit = { .rlim_cur = RLIM_INFINITY };

	(void)getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur == RLIM_INFINITY)
		snprintf(out, out_bytes,
			 "the limit of locked memory is not the cause (ulimit -l); the NIC or the kernel has no "
			 "resources left");
	else
		snprintf(out, out_bytes,
			 "the limit of locked memory is %llu KiB, but %zu KiB are needed: raise the limit with `ulimit "
			 "-l`, in /etc/security/limits.conf, or by LimitMEMLOCK= of the service",
			 (unsigned long long)limit.rlim_cur >> 10, (wanted_bytes + 1023) >> 10);
}

gpul_status gpul_verbs_fail(gpul_error *err, int code, size_t wanted_bytes, const char *fmt, ...)
{
	char what[160], advice[200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	if (code == ENOMEM && wanted_bytes)
		explain_memory(wanted_bytes, advice, sizeof advice);
	else
		snprintf(advice, sizeof advice, "%s", code_advice(code));
	return gpul_fail(err, GPUL_EVERBS, code, "%s: %s (%d)%s%s", what, strerror(code), code, *advice ? ": " : "", advice);
}

/* Names and advice, indexed by enum ibv_wc_status. */
static const struct {
	const char *name, *advice;
} statuses[] = {
#define STATUS(name, advice) [IBV_WC_##name] = { "IBV_WC_" #name, advice }
	STATUS(SUCCESS, ""),
	STATUS(LOC_LEN_ERR, "a message is longer than the receive or the port's maximum"),
	STATUS(LOC_QP_OP_ERR, "the NIC does not support this operation; rxe also reports this for local memory that is not registered"),
	STATUS(LOC_EEC_OP_ERR, ""),
	STATUS(LOC_PROT_ERR, "the local memory is not, or no longer, registered: keep it registered until the request has completed"),
	STATUS(WR_FLUSH_ERR, "an earlier failure on the other side or on another queue pair is the cause: see the peer's error"),
	STATUS(MW_BIND_ERR, ""),
	STATUS(BAD_RESP_ERR, "the peer's answer was invalid: check that the MTU and the packet sequence numbers of both sides agree"),
	STATUS(LOC_ACCESS_ERR, "the peer wrote to memory on this side that it is not allowed to write: see the peer's error"),
	STATUS(REM_INV_REQ_ERR, "the peer rejects the operation: check that both sides use the same version of gpuload"),
	STATUS(REM_ACCESS_ERR, "the remote key or address is wrong: the peer must keep the memory registered until the request completes"),
	STATUS(REM_OP_ERR, "the peer's NIC could not complete the operation: see the peer's error"),
	STATUS(RETRY_EXC_ERR, "the peer's NIC does not answer: check the peer process, the route, the GID (same RoCE version) and the MTU"),
	STATUS(RNR_RETRY_EXC_ERR, "the peer has not posted a receive: check that its process is not stopped"),
	STATUS(LOC_RDD_VIOL_ERR, ""),
	STATUS(REM_INV_RD_REQ_ERR, ""),
	STATUS(REM_ABORT_ERR, "the peer has aborted the operation"),
	STATUS(INV_EECN_ERR, ""),
	STATUS(INV_EEC_STATE_ERR, ""),
	STATUS(FATAL_ERR, "the NIC has failed: see the kernel's log (dmesg)"),
	STATUS(RESP_TIMEOUT_ERR, "the peer's NIC did not answer in time: check the route"),
	STATUS(GENERAL_ERR, "see the kernel's log (dmesg)"),
#undef STATUS
};

const char *gpul_verbs_wc_name(enum ibv_wc_status status)
{
	const size_t i = (size_t)status;

	return i < sizeof statuses / sizeof statuses[0] && statuses[i].name ? statuses[i].name : "unknown status";
}

const char *gpul_verbs_wc_advice(enum ibv_wc_status status, bool of_receive)
{
	const size_t i = (size_t)status;

	if (of_receive && (status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_LOC_ACCESS_ERR))
		return "the peer used a wrong key or address of this side's memory: was it deregistered too early?";
	return i < sizeof statuses / sizeof statuses[0] && statuses[i].advice ? statuses[i].advice : "";
}

#endif
