// The program's standard output.
#pragma once

#include <ostream>

namespace sparsight::cli {

// The results that a verb prints. Names, paths and values in them may be any bytes: nothing but printable UTF-8,
// newlines and tabs gets through (core/printable.h), so verbs write here and never to std::cout. In JSON the escapes
// are JSON's own.
std::ostream& output();

}  // namespace sparsight::cli
