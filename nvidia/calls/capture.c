/* capture.c — copies the data to which the arguments of a call point into a record.
 *
 * The results of a successful call are readable, but an input pointer may be invalid.  Data on the thread's own stack is read
 * directly; other data is read by process_vm_readv(), which returns an error where a load would crash. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "calls/calls_log.h"
#include "nvidia/calls/wrapper_internal.h"

/* of larger results, such as cudaDeviceProp, only the address is logged */
enum { MAX_OUT_STRUCT = 256 };

/* Return the end of this thread's stack; 0: unknown. */
static uintptr_t stack_end(void)
{
	static __thread uintptr_t end __attribute__((tls_model("initial-exec")));
	static __thread bool known __attribute__((tls_model("initial-exec")));
	pthread_attr_t attributes;
	size_t n_bytes = 0;
	void *low = NULL;

	if (!known && !pthread_getattr_np(pthread_self(), &attributes)) {
		if (!pthread_attr_getstack(&attributes, &low, &n_bytes))
			end = (uintptr_t)low + n_bytes;
		pthread_attr_destroy(&attributes);
	}
	known = true;
	return end;
}

/* Copy up to n_bytes from an address that may be invalid; returns the number of copied bytes. */
static size_t copy_safely(void *to, const void *from, size_t n_bytes)
{
	const uintptr_t frame = (uintptr_t)__builtin_frame_address(0), at = (uintptr_t)from;
	struct iovec local = { to, n_bytes }, remote[2] = { { (void *)at, n_bytes } };
	const uintptr_t page_left = 4096 - at % 4096;
	const int before = errno;
	size_t n_parts = 1;
	ssize_t n;

	if (at >= frame && at < stack_end() && n_bytes <= stack_end() - at) {
		memcpy(to, from, n_bytes);
		return n_bytes;
	}
	if (n_bytes > page_left) { /* read two parts, because the text may end before an unmapped page */
		remote[0].iov_len = page_left;
		remote[1] = (struct iovec){ (void *)(at + page_left), n_bytes - page_left };
		n_parts = 2;
	}
	n = process_vm_readv(getpid(), &local, 1, remote, n_parts, 0);
	errno = before;
	return n < 0 ? 0 : (size_t)n;
}

/* Write the header word of a piece (length and marks) before its n_bytes of content; returns the end, rounded up to 8 bytes. */
static uint8_t *end_piece(uint8_t *at, size_t n_bytes, uint64_t marks)
{
	const uint64_t word = n_bytes | marks;

	memcpy(at, &word, sizeof word);
	return at + sizeof word + (n_bytes + 7) / 8 * 8;
}

uint8_t *calls_capture_text(const char *text, uint8_t *at)
{
	char *to = (char *)at + sizeof(uint64_t);
	size_t n = text ? copy_safely(to, text, CALLS_MAX_TEXT) : 0, length = strnlen(to, n);

	if (!n)
		return end_piece(at, 0, CALLS_ABSENT);
	return end_piece(at, length, length == n ? CALLS_CUT : 0);
}

static uint8_t *add_elements(const struct calls_row *row, size_t param, const uint64_t *words, uint8_t *at)
{
	const struct calls_param *p = &row->params[param];
	const void *from = (const void *)(uintptr_t)words[row->params[param].word];
	size_t element = p->pointee->n_bytes, n = calls_elements(row, param, words, CALLS_MAX_ELEMENTS + 1);
	uint64_t marks = 0;

	if (!from || !n || element > CALLS_MAX_PIECE || (p->capture == CALLS_OUT && element > MAX_OUT_STRUCT))
		return end_piece(at, 0, CALLS_ABSENT);
	if (n > CALLS_MAX_ELEMENTS || n * element > CALLS_MAX_PIECE) {
		n = CALLS_MAX_PIECE / element < CALLS_MAX_ELEMENTS ? CALLS_MAX_PIECE / element : CALLS_MAX_ELEMENTS;
		marks = CALLS_CUT;
	}
	if (p->capture == CALLS_OUT) {
		memcpy(at + sizeof marks, from, n * element);
		return end_piece(at, n * element, marks);
	}
	n = copy_safely(at + sizeof marks, from, n * element) / element;
	return n ? end_piece(at, n * element, marks) : end_piece(at, 0, CALLS_ABSENT);
}

uint8_t *calls_capture_in(const struct calls_row *row, const uint64_t *words, uint8_t *at)
{
	for (size_t i = 0; i < row->n_params; i++) {
		if (row->params[i].capture == CALLS_TEXT_IN)
			at = calls_capture_text((const char *)(uintptr_t)words[row->params[i].word], at);
		else if (row->params[i].capture == CALLS_IN)
			at = add_elements(row, i, words, at);
	}
	return at;
}

uint8_t *calls_capture_out(const struct calls_row *row, const uint64_t *words, uint8_t *at)
{
	for (size_t i = 0; i < row->n_params; i++) {
		const uintptr_t pointer = words[row->params[i].word];

		if (row->params[i].capture == CALLS_TEXT_OUT)
			at = calls_capture_text((const char *)pointer, at);
		else if (row->params[i].capture == CALLS_TEXT_POINTER)
			at = calls_capture_text(pointer ? *(const char **)pointer : NULL, at);
		else if (row->params[i].capture == CALLS_OUT)
			at = add_elements(row, i, words, at);
	}
	return at;
}

uint8_t *calls_capture_error(const struct calls_row *row, uint64_t result, uint8_t *at)
{
	static const struct calls_row *of_driver, *of_runtime;
	const char *text = NULL;
	const void *function;

	if (!of_driver) {
		of_runtime = calls_find("cudaGetErrorString");
		of_driver = calls_find("cuGetErrorString");
	}
	function = gpuload_calls_real[(row->is_runtime ? of_runtime : of_driver) - calls_rows];
	if (function && row->is_runtime)
		text = ((const char *(*)(int))(uintptr_t)function)((int)result);
	else if (function)
		((int (*)(int, const char **))(uintptr_t)function)((int)result, &text);
	return calls_capture_text(text, at);
}
