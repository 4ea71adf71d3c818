/* units.h — times and rates as people read them; JSON has base units instead. */
#ifndef GPULOAD_CLI_LIB_UNITS_H
#define GPULOAD_CLI_LIB_UNITS_H

#define UNITS_TEXT_BYTES 32

/** Write a time of at least 0 with four digits in the unit that fits: "184.2 us", "1.5 s".  Returns buf. */
const char *units_time(double seconds, char buf[UNITS_TEXT_BYTES]);

/** Write a rate of at least 0 with three digits and powers of 1000: "3.35 TB/s", "41 kB/s".  Returns buf. */
const char *units_rate(double bytes_per_s, char buf[UNITS_TEXT_BYTES]);

#endif
