/* SPDX-License-Identifier: BSD-2-Clause */
/* Sampling facilities of this machine: "dcpid -check" and "dcpid -list-events". */
#ifndef DCPI_CHECK_H
#define DCPI_CHECK_H

#include "base.h"

/* Onto @out, for people, a line each: the events that can be sampled here (@frequency times a
 * second, as in driver_config), and what each needs. */
int driver_list_events(uint64_t frequency, struct base_buf *out, struct base_err *err);
/*
 * Onto @out, for people: sources, events, rights and limits; what is missing and how to get it; and
 * what a sample costs here, measured (about three seconds; idle CPUs apart).
 */
int driver_check(uint64_t frequency, struct base_buf *out, struct base_err *err);

#endif
