/* run_direction.c — compare the direction of a buffer argument (in, out, inout) with what the kernel does. */
#include "cli/run/cli_run.h"

#include <stdio.h>
#include <string.h>

/* Return the ARG without its direction: "f32[8]=1" for "out:f32[8]=1". */
static const char *without_direction(const char *text)
{
	const char *colon = strchr(text, ':'), *bracket = strchr(text, '[');

	return colon && bracket && colon < bracket ? colon + 1 : text;
}

const char *run_direction_note(const struct run *r, size_t index, char *buf, size_t buf_bytes)
{
	const struct arg *a = &r->ask.args[index];
	const gpul_signature *s = gpul_kernel_signature(r->kernel);
	const gpul_param *p = index < s->n_params && s->params[index].role == GPUL_ROLE_BUFFER ? &s->params[index] : NULL;
	const char *rest = without_direction(a->text);
	bool has_fill = strchr(rest, '=') != NULL;

	if (a->kind != ARG_BUFFER)
		return NULL;
	if (!a->out && (a->changed || (p && p->stored)))
		snprintf(buf, buf_bytes,
			 "argument %zu is given as input, but the kernel writes it: use inout:%s to refill it before each launch", index,
			 rest);
	else if (a->out && !a->in && p && s->complete && !p->stored && p->loaded)
		snprintf(buf, buf_bytes, "argument %zu is given as output, but the kernel only reads it: use %s%s for an input", index,
			 rest, has_fill ? "" : "=FILL");
	else if (a->out && !a->in && p && p->stored && p->loaded)
		snprintf(buf, buf_bytes,
			 "argument %zu is given as output, but the kernel also reads it: use inout:%s%s to set its contents", index, rest,
			 has_fill ? "" : "=FILL");
	else
		return NULL;
	return buf;
}
