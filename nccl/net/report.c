/* report.c — maps errors to NCCL's results, and writes to NCCL's log. */
#include "nccl/net/report.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/log.h"

enum { SUBSYSTEMS = GPUL_NCCL_SUBSYSTEM_INIT | GPUL_NCCL_SUBSYSTEM_NET };

static _Atomic(gpul_nccl_logger *) nccl_log;

static void write_line(int level, const char *line)
{
	gpul_nccl_logger *log = atomic_load(&nccl_log);

	if (log)
		log(level, SUBSYSTEMS, "nccl/net", 0, "NET/gpuload : %s", line);
}

static void forward_line(void *user, gpul_log_level level, const char *module, const char *line)
{
	(void)user, (void)level, (void)module;
	write_line(GPUL_NCCL_LOG_INFO, line);
}

void gpul_net_report_to(gpul_nccl_logger *logger)
{
	if (atomic_exchange(&nccl_log, logger) || secure_getenv("GPULOAD_LOG"))
		return; /* the level and the sink are set only once, because threads of an earlier communicator may be logging */
	gpul_log_to(forward_line, NULL);
	gpul_log_set_level(GPUL_LOG_INFO);
}

void gpul_net_inform(const char *fmt, ...)
{
	char line[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	write_line(GPUL_NCCL_LOG_INFO, line);
}

static void warn(const char *where, const gpul_error *err)
{
	char line[400];

	snprintf(line, sizeof line, "%s: %s", where, err->text);
	write_line(GPUL_NCCL_LOG_WARN, line);
}

gpul_nccl_result gpul_net_report(const char *where, const gpul_error *err)
{
	if (!err->status)
		return GPUL_NCCL_SUCCESS;
	warn(where, err);
	switch (err->status) {
	case GPUL_EINVAL:
	case GPUL_EFORMAT:
		return GPUL_NCCL_INVALID_ARGUMENT;
	case GPUL_EUNSUPPORTED:
		return GPUL_NCCL_INVALID_USAGE;
	case GPUL_ESYS:
	case GPUL_ENOMEM:
	case GPUL_EVERBS:
		return GPUL_NCCL_SYSTEM_ERROR;
	default:
		return GPUL_NCCL_INTERNAL_ERROR;
	}
}

gpul_nccl_result gpul_net_report_peer(const char *where, const gpul_error *err)
{
	warn(where, err);
	return GPUL_NCCL_REMOTE_ERROR;
}
