// Convolutions of stride one, four output rows at a time: half of the products or less.
#pragma once

#include "dense.h"

namespace sonant::SONANT_ISA {

// Whether d is computed so. It depends on shapes, never on threads or batch.
bool by_winograd(const Dense& d);

void run_winograd(const Dense& d, const Context& context);

}  // namespace sonant::SONANT_ISA
