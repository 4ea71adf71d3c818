/* words.c — immediates as words in the peer's memory, for providers that must not write with an immediate: see needs_words() in device.c.
 *
 *     sender                                              receiver
 *     departures[endpoint]: ring of 512 words             arrivals[endpoint]: ring of 512 words, 0: nothing has arrived
 *     one write: data ──────────────────────────────────> the buffer
 *                word n % 512 ──────────────────────────> word n % 512, after the data
 *
 *     0                  4                  8
 *     ┌──────────────────┬──────────────────┐   A word, little endian.  It is not 0, and has arrived whole when the halves fit together.
 *     │ immediate        │ ~immediate       │   The receiver reads the words in order, and sets each to 0.
 *     └──────────────────┴──────────────────┘
 *
 * A ring cannot overflow: a segment has at most one stripe for an endpoint, and at most 256 segments are granted and have not arrived. */
#include "rdma/ofi/ofi_lib.h"

#if GPUL_HAVE_LIBFABRIC

#include <stdlib.h>
#include <string.h>

#include "rdma/ofi/ofi_internal.h"

static_assert(OFI_WORDS >= 2 * GPUL_RDMA_SLOTS, "words that are in flight are not overwritten");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "as drawn");

static gpul_status register_words(struct ofi_path *p, uint64_t *at, bool source, gpul_rdma_piece *piece, void **token, gpul_error *err)
{
	const gpul_rdma_memory m = { .at = (uintptr_t)at, .bytes = p->n_eps * OFI_WORDS * sizeof *at, .dmabuf_fd = -1, .source = source };

	return gpul_ofi_reg(p->device, &m, piece, token, err);
}

gpul_status gpul_ofi_words_create(struct ofi_path *p, gpul_error *err)
{
	struct ofi_words *w = &p->words;
	gpul_status st;

	w->arrivals = calloc(2 * (size_t)p->n_eps * OFI_WORDS, sizeof *w->arrivals);
	if (!w->arrivals)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the immediates of a connection");
	w->departures = w->arrivals + p->n_eps * OFI_WORDS;
	st = register_words(p, w->arrivals, false, &w->arrivals_piece, &w->tokens[0], err);
	return st ? st : register_words(p, w->departures, true, &w->departures_piece, &w->tokens[1], err);
}

void gpul_ofi_words_destroy(struct ofi_path *p)
{
	for (int i = 0; i < 2; i++)
		if (p->words.tokens[i])
			gpul_ofi_dereg(p->device, p->words.tokens[i]);
	free(p->words.arrivals);
}

void gpul_ofi_word_prepare(struct ofi_path *p, unsigned qp, uint32_t imm, struct iovec *from, struct fi_rma_iov *to, void **desc)
{
	struct ofi_words *w = &p->words;
	const uint32_t index = qp * OFI_WORDS + w->n_departed[qp] % OFI_WORDS;

	w->departures[index] = (uint64_t)~imm << 32 | imm;
	*from = (struct iovec){ .iov_base = &w->departures[index], .iov_len = sizeof w->departures[index] };
	*to = (struct fi_rma_iov){ .addr = w->peer.address + index * sizeof(uint64_t), .len = sizeof(uint64_t), .key = w->peer.key };
	*desc = (void *)(uintptr_t)w->departures_piece.local_key;
}

unsigned gpul_ofi_words_read(struct ofi_path *p, gpul_rdma_event *events, unsigned max)
{
	struct ofi_words *w = &p->words;
	unsigned n = 0;

	for (unsigned qp = 0; qp < p->n_eps; qp++)
		while (n < max) {
			uint64_t *at = &w->arrivals[qp * OFI_WORDS + w->n_arrived[qp] % OFI_WORDS];
			const uint64_t word = __atomic_load_n(at, __ATOMIC_ACQUIRE);
			const uint32_t imm = (uint32_t)word;

			if ((uint32_t)(word >> 32) != ~imm)
				break;
			__atomic_store_n(at, 0, __ATOMIC_RELAXED);
			w->n_arrived[qp]++;
			events[n++] = (gpul_rdma_event){ .kind = GPUL_RDMA_EVENT_ARRIVED, .imm = imm };
		}
	return n;
}

#else
typedef int no_libfabric;
#endif
