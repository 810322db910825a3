/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/rx_budget.h"

struct rx_budget rx_budget;
