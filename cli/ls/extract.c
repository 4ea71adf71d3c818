/* extract.c — gpuload extract: write the images of a file as separate files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/lib/command.h"
#include "cli/ls/ls.h"
#include "cli/lib/new_file.h"
#include "cli/lib/progress.h"
#include "cli/lib/message.h"
#include "core/file/file.h"
#include "loader/image/source.h"

/* clang-format off */
enum {
	EXTRACT_OUT, EXTRACT_SM, EXTRACT_KIND, EXTRACT_MATCH, EXTRACT_FORCE, EXTRACT_JSON,
};
/* clang-format on */

/* clang-format off */  /* a table with one row per option */
static const struct cli_opt extract_opts[] = {
	[EXTRACT_OUT] = { "o", "DIR", "folder for the files; created if it does not exist", CLI_FILES },
	[EXTRACT_SM] = IMAGE_SM_OPT,
	[EXTRACT_KIND] = IMAGE_KIND_OPT,
	[EXTRACT_MATCH] = { "match", "GLOB",
		"write only images with a kernel whose name matches GLOB (see gpuload help ls)", NULL },
	[EXTRACT_FORCE] = { "force", NULL, "replace existing files", NULL },
	[EXTRACT_JSON] = CLI_JSON_OPT,
	{ 0 },
};
/* clang-format on */

static const char extract_details[] = "Writes every selected image of FILE (- is standard input) as a separate file into DIR. The\n"
				      "file name is\n"
				      "NAME.INDEX.ARCH.KIND, such as libx.3.sm_90.cubin:\n"
				      "\n"
				      "    NAME    the name of FILE up to its first dot\n"
				      "    INDEX   the number of the image, as printed by gpuload ls\n"
				      "    ARCH    the architecture, such as sm_90\n"
				      "    KIND    cubin or ptx; rdc.cubin or rdc.ptx for code that must be linked first;\n"
				      "            lto.fatbin for LTO code, which nvJitLink can link\n"
				      "\n"
				      "nvdisasm and the driver can read the cubins, ptxas the PTX. If the PTX was stored with\n"
				      "options for ptxas, the first line of the file is a comment with these options\n"
				      "(// ptxas options: ...), and gpuload run applies them.\n"
				      "\n"
				      "An existing file is replaced only with --force. No partial file is left behind: a file\n"
				      "gets its name after its last byte has been written.\n";

struct extract {
	const char *path, *folder;
	struct image_filter filter;
	bool replace;
	struct json *json; /* NULL: the output is text */
	const gpul_source *source;
	const gpul_images *images;
	struct cxx_names *names;
	bool *wanted; /* for each image of the file, whether it is selected; owned */
	bool failed;  /* an error was reported on stderr */
};

/* ---- selection --------------------------------------------------------------------- */

static bool is_selected(const gpul_image *image, void *context)
{
	return image_filter_takes(&((struct extract *)context)->filter, image);
}

static void report_damaged(struct extract *x, const gpul_image *image, const gpul_error *why)
{
	x->failed = true;
	cli_message("extract", "%s: image %zu: %.*s", x->path, ls_image_index(x->images, image), (int)strcspn(why->text, "\n"), why->text);
}

static gpul_status match_image(const gpul_image *image, const gpul_kernel_table *table, const gpul_error *failed, void *context,
			       gpul_error *err)
{
	struct extract *x = context;
	bool *wanted = &x->wanted[ls_image_index(x->images, image)];

	(void)err;
	if (failed)
		report_damaged(x, image, failed);
	for (size_t i = 0; i < table->n && !*wanted; i++)
		*wanted = cxx_name_matches(x->filter.match, table->at[i].name, cxx_names_get(x->names, table->at[i].name));
	return GPUL_OK;
}

static gpul_status select_images(struct extract *x, size_t *n_wanted, gpul_error *err)
{
	size_t n;
	const gpul_image *all = gpul_images_all(x->images, &n);
	gpul_status st = GPUL_OK;

	*n_wanted = 0;
	x->wanted = calloc(n + 1, sizeof *x->wanted);
	if (!x->wanted)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu images", n);
	if (x->filter.match)
		st = gpul_kernels_visit(x->images, is_selected, match_image, x, NULL, err);
	for (size_t i = 0; i < n; i++) {
		if (!x->filter.match)
			x->wanted[i] = is_selected(&all[i], x);
		*n_wanted += x->wanted[i];
	}
	if (st || *n_wanted || x->failed)
		return st;
	if (n == 0)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s: no device code found", x->path);
	if (x->filter.match)
		return gpul_fail(err, GPUL_EINVAL, 0, "%s: none of the %zu images has a kernel that matches '%s'; gpuload ls lists them",
				 x->path, n, x->filter.match);
	return gpul_fail(err, GPUL_EINVAL, 0, "%s: none of the %zu images matches --sm and --kind; gpuload ls lists them", x->path, n);
}

/* ---- one image --------------------------------------------------------------------- */

/* Format a file name such as "libx.3.sm_90.cubin"; the index makes it unique among the images.  Owned by the caller. */
static char *file_name(const struct extract *x, const gpul_image *image)
{
	const char *stem = gpul_file_name(x->path);
	size_t n = *stem ? 1 + strcspn(stem + 1, ".") : 0;
	char arch[16], *name;

	if (asprintf(&name, "%s/%.*s.%zu.%s%s.%s", x->folder, (int)n, stem, ls_image_index(x->images, image), gpul_image_arch(image, arch),
		     image->relocatable && image->kind != GPUL_IMAGE_LTO ? ".rdc" : "",
		     image->kind == GPUL_IMAGE_LTO ? "lto.fatbin" : gpul_image_kind_name(image->kind)) < 0)
		return NULL;
	return name;
}

/* Write the ptxas options of a PTX image as a comment line, unless image->options points to such a line of the PTX text itself. */
static void out_options_line(const gpul_image *image, struct out *o)
{
	size_t n = image->options_bytes;
	const char *stored = image->stored;
	bool in_text = image->options >= stored && image->options < stored + image->stored_bytes;

	while (n && strchr(" \n", image->options[n - 1]))
		n--;
	if (image->kind != GPUL_IMAGE_PTX || !image->options || in_text || !n)
		return;
	out_text(o, GPUL_PTX_OPTIONS " ");
	out_name(o, image->options, n);
	out_text(o, "\n");
}

static void report_written(const struct extract *x, const gpul_image *image, const char *name)
{
	const gpul_place *place = gpul_images_place(x->images, image);
	struct out o = { 0 };

	if (x->json) {
		ls_json_image_begin(x->json, image, place->section);
		json_text(x->json, "path", name);
		ls_json_image_end(x->json, x->images, image);
		return;
	}
	out_name(&o, name, strlen(name));
	out_text(&o, "  ");
	ls_text_image(&o, x->images, image);
	out_text(&o, "\n");
	out_flush(&o, NULL); /* a failure is reported by main.c, which checks stdout at the end */
	out_free(&o);
}

static gpul_status write_image(struct extract *x, const gpul_image *image, const gpul_unpacked *u, const char *name, gpul_error *err)
{
	struct out head = { 0 };
	gpul_status st;

	out_options_line(image, &head);
	st = head.failed ? gpul_fail(err, GPUL_ENOMEM, 0, "no memory for ptxas options")
			 : new_file_write(name, head.at, head.n, u->bytes, u->n_bytes, x->replace, err);
	out_free(&head);
	return st;
}

static gpul_status extract_image(struct extract *x, const gpul_image *image, gpul_unpacked *u, gpul_error *err)
{
	char *name = file_name(x, image);
	gpul_error why = { 0 };
	gpul_status st = GPUL_OK;
	bool damaged;

	if (!name)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a file name");
	damaged = gpul_image_unpack(image, u, &why) != GPUL_OK;
	if (!damaged)
		st = write_image(x, image, u, name, &why);
	if (gpul_source_check(x->source, err)) { /* if the file was truncated meanwhile, that is the cause of any other error */
		if (!damaged && st == GPUL_OK)
			unlink(name);
		st = GPUL_ESYS;
	} else if (damaged) {
		report_damaged(x, image, &why);
	} else if (st) {
		gpul_fail(err, st, why.native, "%s", why.text);
	} else {
		report_written(x, image, name);
	}
	free(name);
	return st;
}

/* ---- the file ---------------------------------------------------------------------- */

static gpul_status extract_wanted(struct extract *x, gpul_error *err)
{
	size_t n, n_wanted;
	const gpul_image *all = gpul_images_all(x->images, &n);
	gpul_unpacked u = { 0 };
	gpul_status st = select_images(x, &n_wanted, err);

	if (st == GPUL_OK && n_wanted)
		st = new_folder(x->folder, err);
	for (size_t i = 0; st == GPUL_OK && i < n; i++)
		if (x->wanted[i])
			st = extract_image(x, &all[i], &u, err);
	gpul_unpacked_free(&u);
	free(x->wanted);
	return st;
}

static gpul_status extract_file(struct extract *x, gpul_error *err)
{
	gpul_source *source = NULL;
	struct progress progress;
	gpul_status st = gpul_source_open(x->path, &source, err);

	if (st)
		return st;
	x->source = source;
	x->path = gpul_source_name(source);
	progress_begin(&progress, x->path);
	st = gpul_source_images(source, &progress.hook, &x->images, err);
	progress_wipe(&progress);
	if (st)
		goto close;
	if (ls_report_damaged("extract", x->images))
		x->failed = true;
	if (x->json) {
		json_begin(x->json, NULL, '{');
		json_text(x->json, "file", x->path);
		json_begin(x->json, "images", '[');
	}
	st = extract_wanted(x, err);
	if (x->json) {
		json_end(x->json, ']');
		json_end(x->json, '}');
	}
	if (st == GPUL_OK && x->json)
		st = json_print(x->json, err);
close:
	gpul_source_close(source);
	return st;
}

static int cmd_extract(const struct cli_args *args, gpul_error *err)
{
	struct json json = { 0 };
	struct extract x = { .folder = cli_value(args, EXTRACT_OUT),
			     .replace = cli_value(args, EXTRACT_FORCE) != NULL,
			     .json = cli_value(args, EXTRACT_JSON) ? &json : NULL };
	gpul_status st;

	if (args->n_operands != 1 || !x.folder || !*x.folder) {
		gpul_fail(err, GPUL_EINVAL, 0, "extract needs %s: gpuload extract FILE -o DIR",
			  args->n_operands == 1 ? "-o DIR" : "one FILE");
		return CLI_USAGE;
	}
	if (!strcmp(x.folder, "-")) {
		gpul_fail(err, GPUL_EINVAL, 0, "extract writes one file for each image: -o needs a folder, not -");
		return CLI_USAGE;
	}
	x.path = args->operands[0];
	st = image_filter_parse(cli_value(args, EXTRACT_SM), cli_value(args, EXTRACT_KIND), cli_value(args, EXTRACT_MATCH), &x.filter, err);
	if (st)
		return cli_exit_code(st);
	x.names = cxx_names_create();
	st = x.names ? extract_file(&x, err) : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the names of files");
	cxx_names_destroy(x.names);
	out_free(&json.out);
	return st || x.failed ? CLI_FAILED : CLI_DONE;
}

const struct cli_cmd cli_extract = {
	"extract",       "FILE -o DIR", "write the images in a file as separate files: cubins, PTX, LTO code",
	extract_details, extract_opts,  cmd_extract,
	CLI_FILES,       NULL,
};
