/* SPDX-License-Identifier: BSD-2-Clause */
/* The classes of a flow graph's blocks and edges. */
#ifndef DCPI_FLOW_CLASSES_H
#define DCPI_FLOW_CLASSES_H

#include "flow.h"

/* Sets @class_id of each block and edge and @nr_classes of the finished graph @f. 0 or -ENOMEM. */
int flow_find_classes(struct flow *f);

#endif
