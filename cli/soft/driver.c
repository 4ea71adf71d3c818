/* driver.c — opens the driver in a process that becomes a program: only that program starts the tools of GPULOAD_SOFT_TOOLS. */
#include <stdlib.h>
#include <string.h>

#include "cli/soft/soft.h"

gpul_status soft_check_tools(const gpul_driver *drv, const char *list, gpul_error *err)
{
	const char *why = list && drv->check_tools ? drv->check_tools(list) : "";

	return *why ? gpul_fail(err, GPUL_EINVAL, 0, "%s", why) : GPUL_OK;
}

gpul_status soft_open_driver(gpul_driver_choice choice, const gpul_driver **out, gpul_error *err)
{
	const char *given = secure_getenv("GPULOAD_SOFT_TOOLS");
	char *list = given ? strdup(given) : NULL;
	gpul_status st;

	if (given && !list)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the names of the tools");
	unsetenv("GPULOAD_SOFT_TOOLS");
	st = gpul_driver_open(choice, out, err);
	if (!st)
		st = soft_check_tools(*out, list, err);
	if (list && setenv("GPULOAD_SOFT_TOOLS", list, 1))
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the names of the tools");
	free(list);
	return st;
}
