/* devices_arg.c — parse --driver and --devices, and open the contexts. */
#include "cli/lib/options/devices_arg.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static gpul_status add_ordinal(struct devices_arg *d, int ordinal, gpul_error *err)
{
	for (unsigned i = 0; i < d->n; i++)
		if (d->ordinal[i] == ordinal)
			return gpul_fail(err, GPUL_EINVAL, 0, "--devices names device %d twice", ordinal);
	if (d->n == GPUL_MEM_MAX_DEVICES)
		return gpul_fail(err, GPUL_EINVAL, 0, "--devices names more than %d devices", GPUL_MEM_MAX_DEVICES);
	d->ordinal[d->n++] = ordinal;
	return GPUL_OK;
}

static gpul_status parse_list(const char *list, struct devices_arg *d, gpul_error *err)
{
	for (const char *at = list;; at++) {
		char *end = NULL;
		long ordinal = *at >= '0' && *at <= '9' ? strtol(at, &end, 10) : -1;
		gpul_status st;

		if (ordinal < 0 || ordinal > INT_MAX || (*end && *end != ','))
			return gpul_fail(err, GPUL_EINVAL, 0,
					 "--devices must be numbers of devices, separated by commas, "
					 "such as 0,1; not '%s'",
					 list);
		st = add_ordinal(d, (int)ordinal, err);
		if (st || !*end)
			return st;
		at = end;
	}
}

gpul_status devices_arg_parse(const char *driver, const char *devices, struct devices_arg *out, gpul_error *err)
{
	gpul_status st;

	*out = (struct devices_arg){ .choice = GPUL_DRIVER_AUTO };
	if (driver && !gpul_driver_choice_parse(driver, &out->choice))
		return gpul_fail(err, GPUL_EINVAL, 0, "--driver must be auto, nvidia or soft, not '%s'", driver);
	st = parse_list(devices ? devices : "0", out, err);
	if (st)
		*out = (struct devices_arg){ 0 };
	return st;
}

gpul_status devices_arg_open(struct devices_arg *d, gpul_error *err)
{
	gpul_status st = gpul_driver_open(d->choice, &d->drv, err);

	/* Open the contexts from the last device to the first: each one becomes current, so context[0] is current at the end. */
	for (unsigned i = d->n; st == GPUL_OK && i-- > 0;)
		st = gpul_context_open(d->drv, d->ordinal[i], &d->context[i], err);
	if (st)
		devices_arg_close(d);
	return st;
}

void devices_arg_close(struct devices_arg *d)
{
	for (unsigned i = 0; i < GPUL_MEM_MAX_DEVICES; i++)
		gpul_context_close(&d->context[i]);
}

gpul_status devices_arg_backend(const char *backend, const char *provider, const char **out, gpul_error *err)
{
	static const char *const names[] = { "auto", "verbs", "libfabric", "reliable-udp", "reliable-verbs" };
	const char *of_provider = !provider ? NULL : strcmp(provider, "reliable-udp") ? "libfabric" : "reliable-udp";
	unsigned i = 0;

	while (backend && i < 5 && strcmp(backend, names[i]) != 0)
		i++;
	if (i == 5)
		return gpul_fail(err, GPUL_EINVAL, 0, "--backend must be auto, verbs, libfabric, reliable-udp or reliable-verbs, not '%s'",
				 backend);
	if (of_provider && i && strcmp(of_provider, names[i]) != 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "--provider %s selects %s, but --backend is %s", provider, of_provider, names[i]);
	*out = of_provider ? of_provider : i ? names[i] : NULL;
	return GPUL_OK;
}
