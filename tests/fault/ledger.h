/* ledger.h — count the driver objects that this process has created and not freed. */
#ifndef GPULOAD_TESTS_FAULT_LEDGER_H
#define GPULOAD_TESTS_FAULT_LEDGER_H

#include "driver/driver.h"

/* Wrap the calls of a driver table that create or free objects. */
void ledger_wrap(gpul_driver *table);

/* The number of live handles, reservations, mappings, registrations, allocations, imports and events. */
int ledger_total(void);

#endif
