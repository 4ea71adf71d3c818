/* host.h — the part of the assert case that runs in its own process. */
#ifndef GPULOAD_TESTS_CORPUS_HOST_H
#define GPULOAD_TESTS_CORPUS_HOST_H

struct corpus;

/* Launch pf with the value that it asserts against; 0: that ended in CUDA_ERROR_ASSERT. */
int corpus_assert_child(struct corpus *c);

#endif
