// Convolutions of stride one by pairs of output rows: two thirds to three quarters of the products.
#pragma once

#include "dense.h"

namespace sonant::SONANT_ISA {

// Whether d is computed so. It depends on shapes, never on threads or batch.
bool by_pairs(const Dense& d);

void run_pairs(const Dense& d, const Context& context);

}  // namespace sonant::SONANT_ISA
