/* SPDX-License-Identifier: BSD-2-Clause */
/* The library that load_removed removes. */
#ifndef REMOVED_CODE_H
#define REMOVED_CODE_H

void removed_work(double seconds);

#endif
