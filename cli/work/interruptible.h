#pragma once

namespace sparsight::cli {

// Called first by work that checks interrupted() (core/interrupt.h): on the first Ctrl-C it finishes its step. Other
// verbs end at once.
void begin_interruptible_work();

}  // namespace sparsight::cli
