/* units.c — choose the unit of a time or a rate. */
#include "cli/lib/units.h"

#include <stddef.h>
#include <stdio.h>

struct unit { double factor; const char *name; };

/* The largest unit in which the rounded number is at least 1; 0.99996 us is printed as 1 us, not as 1000 ns.  The last unit
 * is used for all smaller numbers. */
static const struct unit *choose_unit(const struct unit *units, size_t n, double value, double round_up)
{
	for (size_t i = 0; i + 1 < n; i++)
		if (value * round_up >= units[i].factor)
			return &units[i];
	return &units[n - 1];
}

const char *units_time(double seconds, char buf[UNITS_TEXT_BYTES])
{
	static const struct unit units[] = { { 1, "s" }, { 1e-3, "ms" }, { 1e-6, "us" }, { 1e-9, "ns" } };
	const struct unit *u = choose_unit(units, sizeof units / sizeof *units, seconds, 1.00005);

	snprintf(buf, UNITS_TEXT_BYTES, "%.4g %s", seconds / u->factor, u->name);
	return buf;
}

const char *units_rate(double bytes_per_s, char buf[UNITS_TEXT_BYTES])
{
	static const struct unit units[] = { { 1e12, "TB/s" }, { 1e9, "GB/s" }, { 1e6, "MB/s" }, { 1e3, "kB/s" }, { 1, "B/s" } };
	const struct unit *u = choose_unit(units, sizeof units / sizeof *units, bytes_per_s, 1.0005);

	snprintf(buf, UNITS_TEXT_BYTES, "%.3g %s", bytes_per_s / u->factor, u->name);
	return buf;
}
