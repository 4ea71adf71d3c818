/* warp_print.c — device printf: reads the format from device memory and the arguments from a buffer, in which each argument is
 * aligned to its size (int 4 bytes; long, double and pointers 8). */
#include <stdio.h>
#include <stdlib.h>

#include "softcuda/exec/warp/warp_internal.h"

enum { MAX_FORMAT = 4096, MAX_TEXT = 8192, MAX_SPEC = 32 };

struct printer {
	struct warp_state *s;
	unsigned lane;
	uint64_t args; /* address of the next argument */
	bool unreadable;
	int n_args;
	char text[MAX_TEXT];
	size_t used;
};

static void append_text(struct printer *p, const char *text, size_t bytes)
{
	size_t room = sizeof p->text - p->used;

	bytes = bytes < room ? bytes : room;
	memcpy(p->text + p->used, text, bytes);
	p->used += bytes;
}

static uint64_t next_argument(struct printer *p, unsigned bytes)
{
	uint64_t value = 0;

	p->args = (p->args + bytes - 1) & ~(uint64_t)(bytes - 1);
	if (!gpul_lane_may_read(p->s, p->lane, p->args, bytes)) {
		p->unreadable = true;
		return 0;
	}
	memcpy(&value, (const void *)(uintptr_t)p->args, bytes);
	p->args += bytes;
	return value;
}

/* A conversion of the format: % flags width .precision length letter.  A * in it is replaced by its argument. */
struct spec {
	char flags[MAX_SPEC]; /* the conversion without length and letter, such as "%-08.3" */
	unsigned n_long, n_short;
	char letter;
};

static const char *read_spec(struct printer *p, const char *f, struct spec *out)
{
	size_t n = 0;

	memset(out, 0, sizeof *out);
	out->flags[n++] = *f++;
	for (; *f && strchr("-+ #0123456789.*", *f); f++) {
		if (n + 12 >= sizeof out->flags)
			continue;
		if (*f == '*')
			n += (size_t)snprintf(out->flags + n, 12, "%d", (int)next_argument(p, 4));
		else
			out->flags[n++] = *f;
		if (*f == '*')
			p->n_args++;
	}
	for (; *f && strchr("hljztL", *f); f++) {
		out->n_long += *f != 'h';
		out->n_short += *f == 'h';
	}
	out->letter = *f;
	return *f ? f + 1 : f;
}

/* Append a formatted value; the format is built from the flags, a length modifier that fits the type of `value`, and the letter. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#define APPEND_AS(p, spec, length, value) \
	do { \
		char format_[MAX_SPEC + 8], text_[512]; \
		int n_; \
		snprintf(format_, sizeof format_, "%s%s%c", (spec)->flags, length, (spec)->letter); \
		n_ = snprintf(text_, sizeof text_, format_, value); \
		if (n_ > 0) \
			append_text(p, text_, (size_t)n_ < sizeof text_ ? (size_t)n_ : sizeof text_ - 1); \
	} while (0)

static void print_integer(struct printer *p, const struct spec *s)
{
	uint64_t v = next_argument(p, s->n_long ? 8 : 4);
	bool sign = s->letter == 'd' || s->letter == 'i';

	if (s->n_long)
		APPEND_AS(p, s, "ll", (unsigned long long)v);
	else if (s->n_short >= 2)
		APPEND_AS(p, s, "", sign ? (unsigned)(int)(int8_t)v : (unsigned)(uint8_t)v);
	else if (s->n_short)
		APPEND_AS(p, s, "", sign ? (unsigned)(int)(int16_t)v : (unsigned)(uint16_t)v);
	else
		APPEND_AS(p, s, "", (unsigned)v);
}

static void print_string(struct printer *p, const struct spec *s)
{
	uint64_t at = next_argument(p, 8);
	char text[512];

	if (!at)
		snprintf(text, sizeof text, "(null)");
	else if (!gpul_lane_string(p->s, p->lane, at, text, sizeof text))
		p->unreadable = true;
	if (!p->unreadable)
		APPEND_AS(p, s, "", text);
}

static void print_conversion(struct printer *p, const struct spec *s)
{
	uint64_t bits;
	double x;

	p->n_args++;
	switch (s->letter) {
	case 'd':
	case 'i':
	case 'u':
	case 'x':
	case 'X':
	case 'o':
		print_integer(p, s);
		break;
	case 'c':
		APPEND_AS(p, s, "", (int)(unsigned char)next_argument(p, 4));
		break;
	case 'f':
	case 'F':
	case 'e':
	case 'E':
	case 'g':
	case 'G':
	case 'a':
	case 'A':
		bits = next_argument(p, 8);
		memcpy(&x, &bits, sizeof x);
		APPEND_AS(p, s, "", x);
		break;
	case 's':
		print_string(p, s);
		break;
	case 'p':
		APPEND_AS(p, s, "", (void *)(uintptr_t)next_argument(p, 8));
		break;
	default: /* not a conversion of C, so it is printed unchanged */
		p->n_args--;
		append_text(p, s->flags, strlen(s->flags));
		append_text(p, &s->letter, s->letter != 0);
		break;
	}
}
#pragma GCC diagnostic pop

static void print_format(struct printer *p, const char *f)
{
	while (*f && !p->unreadable) {
		size_t plain = strcspn(f, "%");
		struct spec spec;

		append_text(p, f, plain);
		f += plain;
		if (!*f)
			break;
		if (f[1] == '%') {
			append_text(p, "%", 1);
			f += 2;
			continue;
		}
		f = read_spec(p, f, &spec);
		print_conversion(p, &spec);
	}
}

int gpul_lane_printf(struct warp_state *s, const struct insn *i, unsigned lane, uint64_t format_at, uint64_t args, const struct insn **stop)
{
	const gpul_exec_machine_options *o = &s->block->launch->machine->options;
	struct printer p = { .s = s, .lane = lane, .args = args };
	char format[MAX_FORMAT];

	if (!gpul_lane_string(s, lane, format_at, format, sizeof format))
		p.unreadable = true;
	else
		print_format(&p, format);
	if (p.unreadable) {
		*stop = gpul_fault_text(s, i, GPUL_EXEC_ILLEGAL_ADDRESS, lane,
					"printf: the format, a string or the arguments are not readable");
		return -1;
	}
	o->print(o->print_user, p.text, p.used);
	return p.n_args;
}
