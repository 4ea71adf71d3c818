/* choose.c — finds the image that contains the kernel to be loaded.
 *
 * Only images that the driver would select for the device (verdict TAKEN) are searched: first those that the program registers with
 * the CUDA runtime, then those that are embedded in its data. An exact mangled name ends the search. A demangled name may match
 * several kernels, so all images are then searched. */
#include "loader/choose/choose_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/demangle.h"
#include "loader/names/names.h"

/* ---- the search for a kernel ------------------------------------------------------------- */

#define NAMES_BYTES 170 /* room for kernel names in a message */
enum { MAX_SEEN = 256 };

struct search {
	const gpul_choice *c;
	gpul_input *input; /* the input whose images are searched */
	gpul_origin origin;
	bool linkable;      /* true: search the images to be linked; false: search the loadable images */
	const char *wanted; /* kernel name; NULL: any kernel */
	char part[128];     /* an identifier that every mangled name of the wanted kernel contains */
	gpul_chosen found;
	GPUL_ARRAY(char *) seen; /* mangled names of the kernels counted so far, at most MAX_SEEN; owned */
	bool enough;             /* true if the rest of the search cannot change the result */
	bool full;               /* no more names fit into `names` */
	size_t n_found;          /* number of matching names; if wanted is NULL, of images with kernels that no earlier image has */
	char names[NAMES_BYTES]; /* names of the kernels found: "a, b" */
	gpul_error damage;       /* why the first damaged image could not be read */
};

/* Get an identifier that every mangled name of the wanted kernel contains: "copy" for "ns::copy<int>(int*)". */
static void last_identifier(const char *wanted, char *out, size_t out_bytes)
{
	size_t n = strcspn(wanted, "<(");
	size_t from = n;

	if (n == 0 || strchr(wanted, ' ')) { /* no identifier is in all mangled names, as for "(anonymous namespace)::f" or "void f<int>" */
		*out = '\0';
		return;
	}
	while (from > 0 && wanted[from - 1] != ':')
		from--;
	snprintf(out, out_bytes, "%.*s", (int)(n - from), wanted + from);
}

static void add_name(struct search *s, const char *name)
{
	size_t used = strlen(s->names), room = sizeof s->names - used;
	int n = s->full ? 0 : snprintf(s->names + used, room, "%s%s", used ? ", " : "", name);

	if (n >= 0 && (size_t)n >= room) {
		size_t cut = used + 6 < sizeof s->names ? used : sizeof s->names - 6;

		strcpy(s->names + cut, ", ...");
		s->full = true;
	}
	s->enough = s->enough || (s->full && !s->wanted && s->n_found > 1);
}

static bool is_searched(const gpul_image *image, void *context)
{
	const struct search *s = context;
	size_t i = (size_t)(image - s->input->all);

	return s->input->verdicts[i] == GPUL_TAKEN && image->origin == s->origin && gpul_choice_links(s->c, s->input, i) == s->linkable;
}

/* Return false if a kernel of this name was already counted in another unit, as for an inline function or a template. After
 * MAX_SEEN kernels every kernel counts as new, so that the number in a message may be too high. */
static bool is_new_kernel(struct search *s, const char *name)
{
	char **seen;

	for (size_t i = 0; i < s->seen.n; i++)
		if (strcmp(s->seen.at[i], name) == 0)
			return false;
	seen = s->seen.n < MAX_SEEN ? gpul_array_push(&s->seen) : NULL;
	if (seen && !(*seen = strdup(name)))
		s->seen.n--;
	return true;
}

/* Record a kernel that matches; demangled may be NULL. */
static void add_match(struct search *s, const gpul_image *image, const char *name, const char *demangled)
{
	if (!is_new_kernel(s, name))
		return; /* keep the image that was found first */
	if (s->n_found++ == 0)
		s->found = (gpul_chosen){ s->input, image };
	add_name(s, demangled ? demangled : name);
}

static void check_name(struct search *s, const gpul_image *image, const char *name)
{
	char *demangled;

	if (strcmp(name, s->wanted) == 0) {
		s->found = (gpul_chosen){ s->input, image };
		s->n_found = 1;
		s->enough = true;
		return;
	}
	if (!strstr(name, s->part))
		return;
	demangled = gpul_demangle(name);
	if (demangled && gpul_name_matches(demangled, s->wanted))
		add_match(s, image, name, demangled);
	free(demangled);
}

static void add_all_kernels(struct search *s, const gpul_image *image, const gpul_kernel_table *table)
{
	bool counted = false; /* an image without a new kernel is not counted */

	for (size_t i = 0; i < table->n && !s->enough; i++) {
		char *demangled;
		const char *name;
		char brief[NAMES_BYTES];

		if (!is_new_kernel(s, table->at[i].name))
			continue;
		if (!counted && s->n_found++ == 0)
			s->found = (gpul_chosen){ s->input, image };
		counted = true;
		demangled = gpul_demangle(table->at[i].name);
		name = demangled ? demangled : table->at[i].name;
		snprintf(brief, sizeof brief, "%.*s", (int)gpul_name_before_params(name), name);
		add_name(s, brief);
		free(demangled);
	}
}

static gpul_status visit_image(const gpul_image *image, const gpul_kernel_table *table, const gpul_error *failed, void *context,
			       gpul_error *err)
{
	struct search *s = context;

	(void)err;
	if (failed) {
		s->input->verdicts[image - s->input->all] = GPUL_LEFT_DAMAGED;
		if (!s->damage.status)
			s->damage = *failed;
		return GPUL_OK;
	}
	if (!s->wanted)
		add_all_kernels(s, image, table);
	for (size_t i = 0; s->wanted && i < table->n && !s->enough; i++)
		check_name(s, image, table->at[i].name);
	return s->enough ? GPUL_EINVAL : GPUL_OK; /* a failure ends gpul_kernels_visit() */
}

static gpul_status search_inputs(gpul_choice *c, struct search *s, gpul_origin origin, gpul_error *err)
{
	s->origin = origin;
	for (size_t i = 0; i < c->n_inputs && !s->enough; i++) {
		gpul_status st;

		s->input = &c->inputs[i];
		st = gpul_kernels_visit(s->input->images, is_searched, visit_image, s, NULL, err);
		if (st && !s->enough)
			return st;
	}
	return GPUL_OK;
}

/* ---- the choice ------------------------------------------------------------------------- */

struct counts {
	size_t images, units;
	size_t loadable;  /* number of selected images that can be loaded without a link */
	size_t linkable;  /* number of images to be linked */
	size_t lto;       /* number of images to be linked that are LTO code, whose kernels cannot be listed */
	gpul_chosen only; /* the last loadable image */
};

static struct counts count_images(const gpul_choice *c)
{
	struct counts n = { 0 };

	for (size_t k = 0; k < c->n_inputs; k++)
		for (size_t i = 0; i < c->inputs[k].n; i++) {
			const gpul_input *s = &c->inputs[k];

			n.images++;
			n.units += i == 0 || s->all[i].unit != s->all[i - 1].unit;
			if (gpul_choice_links(c, s, i)) {
				n.linkable++;
				n.lto += s->all[i].kind == GPUL_IMAGE_LTO;
			} else if (s->verdicts[i] == GPUL_TAKEN) {
				n.loadable++;
				n.only = (gpul_chosen){ s, &s->all[i] };
			}
		}
	return n;
}

/* Called if no loadable image has the kernel.  Linking may take seconds, so first check that one of the images to be linked has it. */
static gpul_status consider_linking(gpul_choice *c, struct search *s, const struct counts *n, gpul_error *err)
{
	gpul_status st;

	if (!s->wanted || n->lto || n->linkable == 1)
		return GPUL_OK;
	s->linkable = true;
	st = search_inputs(c, s, GPUL_ORIGIN_REGISTERED, err);
	if (!st && s->n_found == 0)
		st = gpul_choice_no_kernel(c, &s->damage, err);
	s->n_found = s->n_found > 1 ? s->n_found : 0; /* with 0, the caller links; with a larger number, it reports the ambiguity */
	return st;
}

static gpul_status report_result(const gpul_choice *c, const struct search *s, const struct counts *n, gpul_chosen *out, gpul_error *err)
{
	const char *path = c->inputs[0].name;

	if (s->n_found == 1) {
		*out = s->found;
		return GPUL_OK;
	}
	if (s->n_found && s->wanted)
		return gpul_fail(err, GPUL_EINVAL, 0, "%zu kernels match '%.40s': %s", s->n_found, s->wanted, s->names);
	if (s->n_found)
		return gpul_fail(err, GPUL_EINVAL, 0, "%s has several kernels: name one of %s", path, s->names);
	if (n->linkable) {
		*out = (gpul_chosen){ 0 };
		return GPUL_OK;
	}
	if (s->wanted)
		return gpul_choice_no_kernel(c, &s->damage, err);
	if (s->damage.status)
		return gpul_fail(err, s->damage.status, s->damage.native, "%s: %s", path, s->damage.text);
	return gpul_fail(err, GPUL_EFORMAT, 0, "%s has no kernels for this device", path);
}

/* Return the first read error of the inputs, because the missing kernel may be in the part that could not be read. */
static gpul_error first_damage(const gpul_choice *c)
{
	for (size_t k = 0; k < c->n_inputs; k++) {
		size_t n = 0;
		const gpul_error *damaged = c->inputs[k].images ? gpul_images_damaged(c->inputs[k].images, &n) : NULL;

		if (n)
			return damaged[0];
	}
	return (gpul_error){ 0 };
}

gpul_status gpul_choice_find(gpul_choice *c, gpul_chosen *out, gpul_error *err)
{
	struct search s = { .c = c, .wanted = c->options->kernel };
	struct counts n = count_images(c);
	gpul_status st;

	if (n.images == 0)
		return gpul_choice_no_code(c, err);
	if (n.loadable + n.linkable == 0)
		return gpul_choice_no_image(c, err);
	if (n.units == 1 && n.loadable == 1) { /* only one image: load it without a search */
		*out = n.only;
		return GPUL_OK;
	}
	if (s.wanted)
		last_identifier(s.wanted, s.part, sizeof s.part);
	s.damage = first_damage(c);
	st = search_inputs(c, &s, GPUL_ORIGIN_REGISTERED, err);
	if (!st && s.n_found == 0 && n.linkable == 0)
		st = search_inputs(c, &s, GPUL_ORIGIN_EMBEDDED, err);
	if (!st && s.n_found == 0 && n.linkable)
		st = consider_linking(c, &s, &n, err);
	if (!st)
		st = report_result(c, &s, &n, out, err);
	for (size_t i = 0; i < s.seen.n; i++)
		free(s.seen.at[i]);
	gpul_array_free(&s.seen);
	return st;
}
