/* form_oracle.c — writes and reads the lines of a file with a GPU's results (form_oracle.h). */
#include "tests/gpu/form_oracle.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static const uint64_t first_hash = UINT64_C(0xcbf29ce484222325);

static uint64_t hash_input(const struct form *f)
{
	return hash_bytes(hash_bytes(first_hash, f->ptx.bytes, f->ptx.n_bytes), f->in.bytes, f->in.n_bytes);
}

/* The number of rows without the copies of row 0 with which make_forms.py fills the last block. */
static size_t distinct_rows(const struct form *f)
{
	const char *in = f->in.bytes;
	size_t n = f->rows;

	while (n > 1 && !memcmp(in, in + (n - 1) * f->in_bytes, f->in_bytes))
		n--;
	return n;
}

void form_oracle_write(FILE *to, const struct form *f, const void *result)
{
	const unsigned char *bytes = result;

	fprintf(to, "%s %016" PRIx64 " ", f->name, hash_input(f));
	if (f->check == FORM_BITS) {
		fprintf(to, "bits %016" PRIx64 "\n", hash_bytes(first_hash, result, f->rows * f->out_bytes));
		return;
	}
	fputs("rows ", to);
	for (size_t i = 0; i < distinct_rows(f) * f->out_bytes; i++)
		fprintf(to, "%02x", bytes[i]);
	fputs("\n", to);
}

/* Return the text after "NAME " in the line of this form; NULL: no such line. */
static const char *find_line(const char *oracle, const char *name)
{
	const size_t n = strlen(name);

	for (const char *at = oracle; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (!strncmp(at, name, n) && at[n] == ' ')
			return at + n + 1;
	}
	return NULL;
}

static int digit_value(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool rows_agree(const struct form *f, const char *hex, const unsigned char *result)
{
	const size_t n = f->out_bytes, digits = strspn(hex, "0123456789abcdef");
	unsigned char *row = malloc(n);
	bool agree = row && digits == 2 * n * distinct_rows(f);

	for (size_t at = 0; agree && at < digits / 2; at += n) {
		for (size_t i = 0; i < n; i++)
			row[i] = (unsigned char)(digit_value(hex[2 * (at + i)]) << 4 | digit_value(hex[2 * (at + i) + 1]));
		agree = form_row_agrees(f, row, result + at);
	}
	free(row);
	return agree;
}

form_verdict form_oracle_compare(const char *oracle, const struct form *f, const void *result)
{
	const char *line = find_line(oracle, f->name);
	uint64_t input, bits;
	int skip = 0;

	if (!line)
		return FORM_UNKNOWN;
	if (sscanf(line, "%16" SCNx64 " ", &input) != 1 || input != hash_input(f))
		return FORM_OUTDATED;
	if (f->check == FORM_BITS)
		return sscanf(line, "%*x bits %16" SCNx64, &bits) == 1 && bits == hash_bytes(first_hash, result, f->rows * f->out_bytes)
			       ? FORM_AGREES
			       : FORM_DIFFERS;
	if (sscanf(line, "%*x rows %n", &skip) != 0 || !skip)
		return FORM_DIFFERS;
	return rows_agree(f, line + skip, result) ? FORM_AGREES : FORM_DIFFERS;
}
