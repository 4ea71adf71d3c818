/* filter.c — parses the items of a filter and marks the calls that each one selects. */
#include "cli/calls/log/filter.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "calls/calls_log.h"
#include "calls/calls_table.h"
#include "core/text.h"

enum { MAX_ITEM = 128, MAX_NAMES = 2 * CALLS_MAX_ROWS };

static const char classes[] = "memory, vmm, launch, stream, event, module, graph, texture, context, device, other, driver, runtime";

static bool row_fits(const struct calls_row *row, const char *item)
{
	return !strcmp(item, "all") || !strcmp(item, row->category) || !strcmp(item, row->is_runtime ? "runtime" : "driver") ||
	       !fnmatch(item, row->name, 0) || !fnmatch(item, row->base, 0);
}

static gpul_status unknown_item(const char *item, gpul_error *err)
{
	static const char *names[MAX_NAMES];
	const char *near;
	size_t n = 0;

	for (size_t i = 0; i < n_calls_rows && n + 2 < MAX_NAMES; i++) {
		names[n++] = calls_rows[i].base;
		if (!i || strcmp(calls_rows[i].category, calls_rows[i - 1].category))
			names[n++] = calls_rows[i].category;
	}
	near = strpbrk(item, "*?[") ? NULL : gpul_text_nearest(item, names, n);
	if (near)
		return gpul_fail(err, GPUL_EINVAL, 0, "filter: there is no call or class '%s'; did you mean %s?", item, near);
	return gpul_fail(err, GPUL_EINVAL, 0, "filter: '%s' matches no call; the classes are %s", item, classes);
}

gpul_status filter_read(const char *filter, uint8_t *wishes, gpul_error *err)
{
	const char *at = filter && *filter ? filter : "all";

	memset(wishes, *at == '!' ? CALLS_WANTED : CALLS_IGNORED, n_calls_rows);
	while (*at) {
		const size_t n = strcspn(at, ",");
		const bool remove = *at == '!';
		char item[MAX_ITEM];
		bool fits = false;

		if (n >= sizeof item)
			return gpul_fail(err, GPUL_EINVAL, 0, "filter: an item has %zu bytes, but the limit is %d", n, MAX_ITEM - 1);
		snprintf(item, sizeof item, "%.*s", (int)(n - remove), at + remove);
		for (size_t i = 0; i < n_calls_rows; i++) {
			if (!row_fits(&calls_rows[i], item))
				continue;
			wishes[i] = remove ? CALLS_IGNORED : CALLS_WANTED;
			fits = true;
		}
		if (!fits)
			return unknown_item(item, err);
		at += n + (at[n] == ',');
	}
	for (size_t i = 0; i < n_calls_rows; i++)
		if (calls_rows[i].names_kernel && wishes[i] == CALLS_IGNORED)
			wishes[i] = CALLS_HIDDEN;
	return GPUL_OK;
}
