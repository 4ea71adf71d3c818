/* compile_cache.c — gpuload cache: print or clear the cache of compiled and linked code. */
#include "core/cache/cache.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/compile/cli_compile.h"
#include "cli/lib/json/cli_json.h"

enum { CACHE_CLEAR, CACHE_JSON };

/* clang-format off */  /* a table with one row per option */
static const struct cli_opt cache_opts[] = {
	[CACHE_CLEAR] = { "clear", NULL, "remove all results first", NULL },
	[CACHE_JSON] = CLI_JSON_OPT,
	{ 0 },
};
/* clang-format on */

static const char cache_details[] = "Prints the folder of the cache, the number of results in it and their size in bytes.\n"
				    "\n"
				    "gpuload keeps code that NVRTC compiled and nvJitLink linked. It uses a kept result again if\n"
				    "all inputs are the same: source, headers, options, architecture and compiler version.\n"
				    "GPULOAD_LOG=debug prints which results are found and kept.\n"
				    "\n"
				    "    GPULOAD_CACHE            the folder, or off (default: $XDG_CACHE_HOME/gpuload,\n"
				    "                             otherwise ~/.cache/gpuload)\n"
				    "    GPULOAD_CACHE_MAX_BYTES  largest size in bytes; K, M or G may follow (default: 256M).\n"
				    "                             If the cache is larger, the least recently used results\n"
				    "                             are removed\n"
				    "\n"
				    "A folder that other users can write to is not used.\n";

static int print_json(const gpul_cache_status *s, gpul_error *err)
{
	struct json j = { 0 };

	json_begin(&j, NULL, '{');
	if (*s->folder)
		json_text(&j, "folder", s->folder);
	else
		json_null(&j, "folder");
	if (*s->why_not)
		json_text(&j, "unused_because", s->why_not);
	json_u64(&j, "results", s->n_results);
	json_u64(&j, "bytes", s->bytes);
	json_u64(&j, "bound_bytes", s->bound_bytes);
	json_end(&j, '}');
	return cli_exit_code(json_print(&j, err));
}

static void print_text(const gpul_cache_status *s)
{
	if (*s->folder)
		printf("%-8s %s\n", "folder", s->folder);
	if (*s->why_not) {
		printf("%-8s no: %s\n", "used", s->why_not);
		return;
	}
	printf("%-8s %" PRIu64 "\n", "results", s->n_results);
	printf("%-8s %" PRIu64 " of at most %" PRIu64 "\n", "bytes", s->bytes, s->bound_bytes);
}

static int cmd_cache(const struct cli_args *args, gpul_error *err)
{
	gpul_cache_status s;
	uint64_t n_removed;
	gpul_status st;

	if (args->n_operands) {
		gpul_fail(err, GPUL_EINVAL, 0, "cache accepts no operands: gpuload cache [--clear]");
		return CLI_USAGE;
	}
	if (cli_value(args, CACHE_CLEAR)) {
		st = gpul_cache_clear(&n_removed, err);
		if (st)
			return cli_exit_code(st);
	}
	gpul_cache_query(&s);
	if (cli_value(args, CACHE_JSON))
		return print_json(&s, err);
	print_text(&s);
	return CLI_DONE;
}

const struct cli_cmd cli_cache = {
	"cache", "",   "print the state of the cache of compiled and linked code, or clear it", cache_details, cache_opts, cmd_cache,
	NULL,    NULL,
};
