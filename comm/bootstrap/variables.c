/* variables.c — reads environment variables and the numbers in them. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "comm/bootstrap/job_internal.h"

const char *gpul_comm_variable(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value ? value : NULL;
}

gpul_status gpul_comm_job_number(const char *variable, const char *value, int least, int *out, gpul_error *err)
{
	char *end;
	long n;

	if (!value || !*value)
		return gpul_fail(err, GPUL_EINVAL, 0, "%s is not set, although other variables of the same launcher are set", variable);
	errno = 0;
	n = strtol(value, &end, 10);
	if (errno || end == value || *end || n < least || n > INT_MAX)
		return gpul_fail(err, GPUL_EINVAL, 0, "%s=%.40s: expected a number of at least %d", variable, value, least);
	*out = (int)n;
	return GPUL_OK;
}
