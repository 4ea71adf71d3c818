/* plugin_of.c — loads gpuload's network plug-in as NCCL does, and gives it a log function. */
#include "tests/nccl/net/plugin_of.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char last_warning[600];
static int shows_lines;

static void log_line(int level, unsigned long subsystems, const char *file, int line, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	(void)subsystems, (void)file, (void)line;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (level == GPUL_NCCL_LOG_WARN)
		memcpy(last_warning, text, sizeof text);
	if (shows_lines)
		fprintf(stderr, "%s %s\n", level == GPUL_NCCL_LOG_WARN ? "WARN" : "INFO", text);
}

gpul_nccl_result plugin_open(int version, int shows, struct plugin *out)
{
	const char *build = getenv("GPULOAD_BUILD");
	const gpul_nccl_config config = { .traffic_class = GPUL_NCCL_DEFAULT_CLASS };
	char path[4096], name[32];
	void *library, *table;

	snprintf(path, sizeof path, "%s/libnccl-net-gpuload.so", build ? build : "build");
	snprintf(name, sizeof name, "ncclNetPlugin_v%d", version);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	table = library ? dlsym(library, name) : NULL;
	if (!table) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	shows_lines = shows;
	last_warning[0] = '\0';
	*out = (struct plugin){ .version = version };
	if (version == 10) {
		out->v10 = table;
		return out->v10->init(log_line, NULL);
	}
	out->v11 = version == 11 ? table : NULL;
	out->v12 = version == 12 ? table : NULL;
	return (out->v12 ? out->v12->init : out->v11->init)(&out->context, 7, &config, log_line, NULL);
}

void plugin_close(struct plugin *p)
{
	if (p->version > 10)
		(p->v12 ? p->v12->finalize : p->v11->finalize)(p->context);
}

gpul_nccl_result plugin_listen(struct plugin *p, int device, void *handle, void **listener)
{
	return p->v10 ? p->v10->listen(device, handle, listener)
		      : (p->v12 ? p->v12->listen : p->v11->listen)(p->context, device, handle, listener);
}

gpul_nccl_result plugin_connect(struct plugin *p, int device, const void *handle, void **sender)
{
	return p->v10 ? p->v10->connect(device, NULL, handle, sender, NULL)
		      : (p->v12 ? p->v12->connect : p->v11->connect)(p->context, device, handle, sender, NULL);
}

gpul_nccl_result plugin_properties(struct plugin *p, int device, gpul_nccl_properties_v12 *out)
{
	gpul_nccl_properties_v11 v11 = { 0 };
	gpul_nccl_properties_v10 v10 = { 0 };
	gpul_nccl_result r;

	if (p->v12)
		return p->v12->properties(device, out);
	r = p->v11 ? p->v11->properties(device, &v11) : p->v10->properties(device, &v10);
	memset(out, 0, sizeof *out);
	memcpy(out, p->v11 ? (void *)&v11 : (void *)&v10, offsetof(gpul_nccl_properties_v12, n_devices) + 2 * sizeof(int));
	out->max_p2p_bytes = p->v11 ? v11.max_p2p_bytes : v10.max_p2p_bytes;
	return r;
}

const char *plugin_warning(void)
{
	return last_warning;
}
