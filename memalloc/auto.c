/* auto.c — gpul_mem_create(): creates memory of a kind, or, for AUTO, of the first kind of host memory that works. */
#include "memalloc/mem_internal.h"

#include <stdio.h>
#include <string.h>

#include "core/log.h"

enum { WHY_CHARS = sizeof((gpul_error *)0)->text, SHARE_CHARS = 78 };

/* Join the error texts of the first n attempts in `why`, each shortened so that all fit. */
static void join_reasons(const gpul_error tries[GPUL_MEM_N_AUTO], unsigned n, char why[WHY_CHARS])
{
	int room = n > 1 ? SHARE_CHARS : WHY_CHARS - 1;
	size_t at = 0;

	why[0] = '\0';
	for (unsigned i = 0; i < n; i++)
		at += (size_t)snprintf(why + at, WHY_CHARS - at, "%s%.*s", i ? "; " : "", room, tries[i].text);
}

/* If an earlier probe found that a kind does not work, or cannot be shared although desc requires it, return the reason; else NULL. */
static const char *find_probed_failure(const gpul_driver *drv, const gpul_mem_desc *desc, gpul_mem_kind kind)
{
	const gpul_mem_probe_report *r = desc->devices && desc->n_devices ? gpul_mem_probed(drv, desc->devices[0]) : NULL;
	const gpul_mem_verdict *v = r ? &r->kind[kind] : NULL;

	return v && (!v->works || (desc->exportable && !v->shares)) ? v->why : NULL;
}

/* Create memory of one kind, unless a probe has found that it does not work. */
static gpul_status try_kind(const gpul_driver *drv, const gpul_mem_desc *desc, gpul_mem_kind kind, gpul_mem **out, gpul_error *err)
{
	const char *why = find_probed_failure(drv, desc, kind);

	return why ? gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s", why) : gpul_mem_create_kind(drv, desc, kind, out, err);
}

static gpul_status create_auto(const gpul_driver *drv, const gpul_mem_desc *desc, gpul_mem **out, gpul_error *err)
{
	gpul_error tries[GPUL_MEM_N_AUTO] = { 0 };
	char why[WHY_CHARS];

	for (unsigned i = 0; i < GPUL_MEM_N_AUTO; i++) {
		gpul_mem *m = NULL;
		gpul_status st = try_kind(drv, desc, gpul_mem_auto_order[i], &m, &tries[i]);

		if (!st) {
			join_reasons(tries, i, m->about.why);
			*out = m;
			return GPUL_OK;
		}
		/* The description is invalid for every kind, so no other kind is tried. */
		if (st == GPUL_EINVAL)
			return gpul_fail(err, st, tries[i].native, "%s", tries[i].text);
		gpul_log(GPUL_LOG_INFO, "memalloc", "%s", tries[i].text);
	}
	join_reasons(tries, GPUL_MEM_N_AUTO, why);
	return gpul_fail(err, tries[GPUL_MEM_N_AUTO - 1].status, tries[GPUL_MEM_N_AUTO - 1].native, "%s", why);
}

gpul_status gpul_mem_create(const gpul_driver *drv, const gpul_mem_desc *desc, gpul_mem **out, gpul_error *err)
{
	return desc->kind == GPUL_MEM_AUTO ? create_auto(drv, desc, out, err) : gpul_mem_create_kind(drv, desc, desc->kind, out, err);
}
