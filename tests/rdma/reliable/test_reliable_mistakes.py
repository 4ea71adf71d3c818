#!/usr/bin/env python3
"""The simulation of a reliable connection finds mistakes: each one is planted into a copy of rdma/reliable, which must then fail on some seed.

`--full` runs the simulation built with ASan and UBSan, and reports the first seed that finds each mistake.
"""
import glob, os, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from mistakes import ROOT, Campaign, Mistake

os.chdir(ROOT)
SOURCES = [*sorted(glob.glob("tests/rdma/reliable/relsim*.c")), *sorted(glob.glob("rdma/reliable/*.c")), "rdma/protocol/protocol_failure.c", "core/error.c",
           "core/text.c", "core/clock.c"]
MISTAKES = [Mistake(*m) for m in (
    ("a bit of an acknowledgement stands for the packet beside it", "const uint32_t before = a->largest - packet - 1;", "const uint32_t before = a->largest - packet;"),
    ("the bits of an acknowledgement are moved by one too few", "p->bits[0] <<= ahead;", "p->bits[0] <<= ahead - 1;"),
    ("a chunk that arrives twice is written twice", "if (rel_before(d.chunk, r->in_next) || rel_has_arrived(r, d.chunk)) {", "if (rel_before(d.chunk, r->in_next) && rel_has_arrived(r, d.chunk)) {"),
    ("a late chunk is written to a buffer that was given back", "if (rel_before(d.chunk, r->in_next) || rel_has_arrived(r, d.chunk)) {\n",
     "if (rel_before(d.chunk, r->in_next) || rel_has_arrived(r, d.chunk)) {\n\t\t*out = (gpul_rel_chunk){ .place = true, .bytes = d.bytes, .skip = sizeof d, "
     ".address = d.address, .key = d.key };\n"),
    ("the bits of arrived chunks are not cleared", "&= ~(UINT64_C(1) << r->in_next % 64);", "&= ~(UINT64_C(0) << r->in_next % 64);"),
    ("a message ends one chunk early", "if (m && --m->n_missing == 0)\n\t\tend", "if (m && --m->n_missing <= 1 && !(m->n_missing = 0))\n\t\tend"),
    ("a message is acknowledged with its first chunk", "if (--m->n_unacked == 0)", "if (m->n_unacked-- == m->n_chunks)"),
    ("comparisons ignore that numbers wrap around", "return (int32_t)(a - b) < 0;", "return a < b;"),
    ("a time-out does not send again", "rel_chunk_lost(r, chunk);\n\t\t}\n\t}\n}", ";\n\t\t}\n\t}\n}"),
    ("no time-out begins with the first packet", "if (p->in_flight++ == 0)\n\t\tset_deadline(r, p, now_ns);", "p->in_flight++;"),
    ("the time-out is not doubled", "ns <<= p->n_timeouts", "ns <<= 0 * p->n_timeouts"),
    ("a dead path is never tried again", "if (p->probe_ns <= now_ns && needs_probe(r, p))", "if (0)"),
    ("all paths may be dead", "&& count_alive(r) > 1", ""),
    ("a path that answers stays dead", "if (!p->alive) {\n\t\t\tp->alive = true;", "if (!p->alive) {"),
    ("chunks of a dead path stay with it", "if (p->alive && (!p->n_timeouts || !r->n_healthy))\n\t\t\treturn may_send(r, p, now_ns) ? p : NULL;", "return may_send(r, p, now_ns) ? p : NULL;"),
    ("credit is counted twice", "r->in_limit += n;", "r->in_limit += n, r->limit += n;"),
    ("an end without credit does not ask for it", "r->asking = true;", "return false;"),
    ("a request for credit is not answered", "if (a.flags & REL_ASK)", "if (0)"),
    ("the rate of a path may sink to nothing", "p->rate /= 2;\n\t\tlimit_rate(r, p);", "p->rate /= 2;"),
    ("a probe of a dead path wakes without data", "|| !p->alive) && r->oldest != r->next_chunk);", "|| !p->alive));"),
    ("silence without credit is not noticed", "r->oldest == r->next_chunk && !r->asking", "r->oldest == r->next_chunk"),
    ("the limit of a path number is not checked", "if (d->path >= r->o.n_paths)", "if (0)"),
    ("the length of a chunk is not compared with its datagram", "if (d->bytes != n_bytes - sizeof *d || d->bytes > r->o.chunk_bytes)", "if (0)"),
    ("a chunk is written again by the NIC", "if (!c->again && rel_is_write(r, m, chunk))", "if (rel_is_write(r, m, chunk))"),
    ("a late write is not excluded", "return !p->closed && rel_before(p->largest, rel_nearest", "return 0 && rel_before(p->largest, rel_nearest"),
    ("any packet of the path passes a fence", "rel_before(p->largest, f->packet)", "0"),
    ("the sender names no fence", "d->flags |= REL_FENCE;", ";"),
    ("a path that is silent after a time-out gets no ping", "return r->o.writes || ((r", "return ((r"),
    ("chunks that came before their header are not counted", "m->n_missing -= rel_before(chunk, r->in_next + r->o.window) &&", "m->n_missing -= 0 &&"),
    ("the chunks of a long message are taken for earlier ones", "rel_before(chunk, r->in_next + r->o.window) && rel_has", "rel_has"),
    ("both ends decide which paths are closed", "return r->o.token > r->o.peer_token;", "return true;"),
    ("a closed path is reported once", "set_late(r, p, decides(r));", ""),
)]


if __name__ == "__main__":
    sys.exit(Campaign("rdma/reliable", SOURCES, seeds=4000).main(MISTAKES, __doc__.splitlines()[0]))
