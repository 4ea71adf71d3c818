/* ledger.h — what this process has had from the driver and not given back. */
#ifndef GPULOAD_TESTS_FAULT_LEDGER_H
#define GPULOAD_TESTS_FAULT_LEDGER_H

#include "driver/driver.h"

/* Have a table's calls that give and take back be counted. */
void ledger_wrap(gpul_driver *table);

/* Handles, reservations, mappings, registrations, allocations, imports and events that are out. */
int ledger_total(void);

#endif
