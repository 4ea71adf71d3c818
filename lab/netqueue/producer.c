/* producer.c — parses a stream into the entries of a netqueue, as a state machine. */
#include "lab/netqueue/producer.h"

#include <string.h>

static bool is_power_of_two(uint32_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

gpul_status gpul_netqueue_shape_check(const gpul_netqueue_shape *s, gpul_error *err)
{
	if (!is_power_of_two(s->slot_bytes) || s->slot_bytes < GPUL_NETQUEUE_MIN_SLOT_BYTES || s->slot_bytes > GPUL_NETQUEUE_MAX_SLOT_BYTES)
		return gpul_fail(err, GPUL_EINVAL, 0, "the slot size is %u bytes: expected a power of two from %d to %d", s->slot_bytes,
				 GPUL_NETQUEUE_MIN_SLOT_BYTES, GPUL_NETQUEUE_MAX_SLOT_BYTES);
	if (!is_power_of_two(s->n_slots) || s->n_slots < 2 || (uint64_t)s->n_slots * s->slot_bytes > GPUL_NETQUEUE_SOURCE_MASK)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "the number of slots is %u: expected a power of two, at least 2, and at most 64 GiB in all "
				 "slots together",
				 s->n_slots);
	if (!is_power_of_two(s->chunk_entries) || s->chunk_entries > GPUL_NETQUEUE_MAX_CHUNK)
		return gpul_fail(err, GPUL_EINVAL, 0, "the chunk size is %u entries: expected a power of two up to %d", s->chunk_entries,
				 GPUL_NETQUEUE_MAX_CHUNK);
	if (s->n_blocks < 1 || s->n_blocks > GPUL_NETQUEUE_MAX_BLOCKS)
		return gpul_fail(err, GPUL_EINVAL, 0, "the number of blocks is %u: expected 1 to %d", s->n_blocks,
				 GPUL_NETQUEUE_MAX_BLOCKS);
	if (!is_power_of_two(s->n_entries) || s->n_entries > GPUL_NETQUEUE_MAX_ENTRIES)
		return gpul_fail(err, GPUL_EINVAL, 0, "the number of ring entries is %u: expected a power of two up to %d", s->n_entries,
				 GPUL_NETQUEUE_MAX_ENTRIES);
	return GPUL_OK;
}

void gpul_netqueue_producer_begin(gpul_netqueue_producer *p, const gpul_netqueue_shape *shape, uint64_t *ends)
{
	memset(p, 0, sizeof *p);
	p->shape = *shape;
	p->ends = ends;
}

static uint64_t bounce_bytes(const gpul_netqueue_producer *p)
{
	return (uint64_t)p->shape.n_slots * p->shape.slot_bytes;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

unsigned gpul_netqueue_room(const gpul_netqueue_producer *p, gpul_netqueue_span out[2])
{
	const uint64_t all = bounce_bytes(p), freed_slots = p->freed & ~(uint64_t)(p->shape.slot_bytes - 1);
	const uint64_t bytes = freed_slots + all - p->received, at = p->received % all, first = smaller(bytes, all - at);

	out[0] = (gpul_netqueue_span){ at, first };
	out[1] = (gpul_netqueue_span){ 0, bytes - first };
	return bytes == 0 ? 0 : bytes > first ? 2 : 1;
}

void gpul_netqueue_received(gpul_netqueue_producer *p, uint64_t n_bytes)
{
	p->received += n_bytes;
}

static uint64_t read_word(const unsigned char *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof word);
	return word;
}

void gpul_netqueue_write_header(unsigned char out[GPUL_NETQUEUE_HEADER_BYTES], uint32_t length, uint32_t pad, uint64_t destination)
{
	const uint64_t word0 = GPUL_NETQUEUE_MAGIC << GPUL_NETQUEUE_MAGIC_SHIFT | (uint64_t)pad << GPUL_NETQUEUE_PAD_SHIFT | length;

	memcpy(out, &word0, sizeof word0);
	memcpy(out + sizeof word0, &destination, sizeof destination);
}

static gpul_status parse_header(gpul_netqueue_producer *p, gpul_error *err)
{
	const uint64_t word0 = read_word(p->header);

	p->header_bytes = 0;
	if (word0 >> GPUL_NETQUEUE_MAGIC_SHIFT != GPUL_NETQUEUE_MAGIC)
		return gpul_fail(err, GPUL_EFORMAT, (int)(p->parsed - GPUL_NETQUEUE_HEADER_BYTES),
				 "byte %llu of the stream: expected the header of record %llu, whose magic number is 0x%llx, not 0x%llx",
				 (unsigned long long)(p->parsed - GPUL_NETQUEUE_HEADER_BYTES), (unsigned long long)p->n_records,
				 GPUL_NETQUEUE_MAGIC, (unsigned long long)(word0 >> GPUL_NETQUEUE_MAGIC_SHIFT));
	p->record_left = (uint32_t)word0;
	p->pad_left = (uint32_t)(word0 >> GPUL_NETQUEUE_PAD_SHIFT) & GPUL_NETQUEUE_MAX_PAD;
	p->destination = smaller(read_word(p->header + 8), GPUL_NETQUEUE_DESTINATION_MASK);
	p->ended = p->record_left == 0;
	p->n_records += !p->ended;
	return GPUL_OK;
}

/* Append the received bytes of a record's header to p->header, up to the end of the bounce buffer. */
static gpul_status collect_header(gpul_netqueue_producer *p, const unsigned char *bounce, gpul_error *err)
{
	const uint64_t at = p->parsed % bounce_bytes(p), in_memory = smaller(p->received - p->parsed, bounce_bytes(p) - at);
	const uint32_t n = (uint32_t)smaller(GPUL_NETQUEUE_HEADER_BYTES - p->header_bytes, in_memory);

	memcpy(p->header + p->header_bytes, bounce + at, n);
	p->header_bytes += n;
	p->parsed += n;
	return p->header_bytes == GPUL_NETQUEUE_HEADER_BYTES ? parse_header(p, err) : GPUL_OK;
}

/* Make an entry for the received part of a record in one slot.  The part must have at least one byte, and the ring a free entry. */
static void make_piece(gpul_netqueue_producer *p, gpul_netqueue_piece *out)
{
	const uint64_t in_slot = p->shape.slot_bytes - p->parsed % p->shape.slot_bytes;
	const uint32_t length = (uint32_t)smaller(smaller(p->record_left, p->received - p->parsed), in_slot);

	*out = (gpul_netqueue_piece){
		.n = p->n_produced, .source = p->parsed % bounce_bytes(p), .destination = p->destination, .length = length
	};
	p->parsed += length;
	p->record_left -= length;
	p->destination = smaller(p->destination + length, GPUL_NETQUEUE_DESTINATION_MASK);
	p->ends[p->n_produced++ & (p->shape.n_entries - 1)] = p->parsed;
}

gpul_status gpul_netqueue_produce(gpul_netqueue_producer *p, const unsigned char *bounce, gpul_netqueue_piece *out, bool *got,
				  gpul_error *err)
{
	gpul_status st = GPUL_OK;

	*got = false;
	while (!st && !*got && p->parsed < p->received) {
		if (p->ended)
			return gpul_fail(err, GPUL_EFORMAT, (int)p->parsed,
					 "byte %llu of the stream: the stream ends here, but the sender has sent %llu more bytes",
					 (unsigned long long)p->parsed, (unsigned long long)(p->received - p->parsed));
		if (p->pad_left && p->record_left) {
			const uint32_t n = (uint32_t)smaller(p->pad_left, p->received - p->parsed);

			p->pad_left -= n;
			p->parsed += n;
		} else if (!p->record_left) {
			st = collect_header(p, bounce, err);
		} else if (p->n_produced - p->n_done == p->shape.n_entries) {
			return GPUL_OK;
		} else {
			make_piece(p, out);
			*got = true;
		}
	}
	if (p->n_done == p->n_produced)
		p->freed = p->parsed; /* no piece refers to the headers and padding parsed so far, so their bytes are free immediately */
	return st;
}

gpul_status gpul_netqueue_credit(gpul_netqueue_producer *p, const uint64_t *done, gpul_error *err)
{
	const gpul_netqueue_shape *s = &p->shape;
	uint64_t n_done = p->n_produced;

	for (uint32_t b = 0; b < s->n_blocks; b++) {
		if (done[b] > p->n_produced ||
		    (done[b] && gpul_netqueue_entry_of(done[b] - 1, b, s->n_blocks, s->chunk_entries) >= p->n_produced))
			return gpul_fail(err, GPUL_EFORMAT, (int)b,
					 "block %u has finished %llu entries, although only %llu entries were produced", b,
					 (unsigned long long)done[b], (unsigned long long)p->n_produced);
		n_done = smaller(n_done, gpul_netqueue_entry_of(done[b], b, s->n_blocks, s->chunk_entries));
	}
	if (n_done > p->n_done) { /* a smaller number is from an earlier report of the block */
		p->n_done = n_done;
		p->freed = n_done == p->n_produced ? p->parsed : p->ends[(n_done - 1) & (s->n_entries - 1)];
	}
	return GPUL_OK;
}

bool gpul_netqueue_ended(const gpul_netqueue_producer *p)
{
	return p->ended;
}
